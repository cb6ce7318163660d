// A rank stops where other ranks may wait for it inside MPI: before MPI starts, while the coordinators plan what is new
// to them, before MPI ends. The calls of the others end with an error, and so do their processes, in good time.
#include <mpi.h>

#include <ronda/ronda.h>

#include <sys/prctl.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
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

bool stops_at_end = false;

/// Called by the library when all is closed.
extern "C" int MPI_Finalize() {
  if (stops_at_end) std::raise(SIGSTOP);
  return PMPI_Finalize();
}

namespace {

int tell(ronda_status status) {
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  if (std::strcmp(rank, "0") == 0 && status == RONDA_ERROR_COMMUNICATION)
    std::fprintf(stderr, "ronda: error: %s\n", last_error().c_str());
  return status == RONDA_ERROR_COMMUNICATION ? 1 : 3;
}

}  // namespace

/// stopped_rank WHEN: the last of three ranks stops at the `start`, at the `end`, or after so many milliseconds.
int main(int, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const std::string when = argv[1];
  const bool last = std::strcmp(std::getenv("OMPI_COMM_WORLD_RANK"), "2") == 0;
  if (last && when == "start") std::raise(SIGSTOP);
  stops_at_end = last && when == "end";
  ronda_options options;
  ronda_group* world = nullptr;
  ronda_default_options(&options, sizeof options);
  options.communication_timeout = when == "start" ? 0.2 : 2;  // a late start is given ten times as long
  if (const ronda_status status = ronda_init(&options, &world)) return tell(status);
  if (when == "end") return tell(ronda_finalize(world));
  if (last) {
    std::thread([milliseconds = std::atoi(argv[1])] {
      std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
      std::raise(SIGSTOP);
    }).detach();
  }
  const ronda_status status = sum_until_it_fails(world);
  const int told = tell(status);
  if (ronda_barrier(world, "after that") != RONDA_ERROR_COMMUNICATION) return 4;
  if (ronda_finalize(world) != RONDA_ERROR_COMMUNICATION) return 5;
  return told;
}
