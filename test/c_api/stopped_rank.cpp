// A rank stops while the coordinators plan what is new to them, which other ranks may wait for inside MPI. The calls of
// the others end with an error, and so do their processes, in good time.
#include <ronda/ronda.h>

#include <sys/prctl.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace {

/// Sums of another size, type and operation each time, so that each has to be planned, until one fails.
ronda_status sum_until_it_fails(ronda_group* world) {
  std::vector<double> data(std::size_t{1} << 18);
  for (const ronda_dtype type : {RONDA_FLOAT32, RONDA_FLOAT64, RONDA_INT32})
    for (const ronda_op op : {RONDA_SUM, RONDA_MIN, RONDA_MAX, RONDA_PRODUCT})
      for (std::size_t count = 100; count < data.size(); count += 1 + count / 9)
        if (const ronda_status status = ronda_allreduce(world, nullptr, data.data(), count, type, op)) return status;
  return RONDA_OK;
}

std::string last_error() {
  std::string text(ronda_last_error(nullptr, 0), '\0');
  ronda_last_error(text.data(), text.size() + 1);
  return text;
}

}  // namespace

/// stopped_rank MILLISECONDS: after so many the last rank stops.
int main(int, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  ronda_options options;
  ronda_group* world = nullptr;
  int rank = 0, size = 0;
  ronda_default_options(&options, sizeof options);
  options.communication_timeout = 2;
  if (ronda_init(&options, &world) != RONDA_OK || ronda_rank(world, &rank) != RONDA_OK ||
      ronda_size(world, &size) != RONDA_OK)
    return 1;
  if (rank == size - 1) {
    std::thread([milliseconds = std::atoi(argv[1])] {
      std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
      std::raise(SIGSTOP);
    }).detach();
  }
  const ronda_status status = sum_until_it_fails(world);
  const std::string text = last_error();
  const ronda_status late = ronda_barrier(world, "after that");
  if (rank == 0 && status == RONDA_ERROR_COMMUNICATION && late == status)
    std::fprintf(stderr, "ronda: error: %s\n", text.c_str());
  const ronda_status end = ronda_finalize(world);
  return end == RONDA_ERROR_COMMUNICATION ? 1 : 3;
}
