// ronda.h as a C program uses it wrongly: every mistake is a status and a text, and the next call works.
#include <ronda/ronda.h>
#include <ronda/ronda_kv.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string>

namespace {

int mistakes = 0;

void require(bool condition, const char* what, int line) {
  if (condition) return;
  std::printf("FAILED in line %d: %s\n", line, what);
  ++mistakes;
}
#define REQUIRE(condition) require((condition), #condition, __LINE__)

/// That `status` is this one, and that the text says so much.
bool fails(ronda_status status, ronda_status expected, const char* part) {
  std::string text(ronda_last_error(nullptr, 0), '\0');
  ronda_last_error(text.data(), text.size() + 1);
  const bool found = status == expected && text.find(part) != std::string::npos;
  if (!found) std::printf("status %d: %s\n", static_cast<int>(status), text.c_str());
  return found;
}

void options_have_a_size() {
  REQUIRE(fails(ronda_default_options(nullptr, sizeof(ronda_options)), RONDA_ERROR_INPUT, "NULL"));
  ronda_options options;
  std::memset(&options, 7, sizeof options);
  REQUIRE(fails(ronda_default_options(&options, 0), RONDA_ERROR_INPUT, "size of 0"));
  REQUIRE(fails(ronda_default_options(&options, sizeof options + 8), RONDA_ERROR_INPUT, "expected 8 to "));
  // An older program's, which ends here: nothing beyond is written.
  const std::size_t older = offsetof(ronda_options, missing_limit);
  REQUIRE(ronda_default_options(&options, older) == RONDA_OK);
  REQUIRE(options.size == older && options.communication_timeout == 60);
  unsigned char beyond[sizeof(double)];
  std::memcpy(beyond, &options.missing_limit, sizeof beyond);
  for (const unsigned char byte : beyond) REQUIRE(byte == 7);
}

void nothing_takes_null(ronda_group* group) {
  float data = 1;
  int number = 0;
  ronda_request* request = nullptr;
  REQUIRE(fails(ronda_rank(nullptr, &number), RONDA_ERROR_INPUT, "the group is NULL"));
  REQUIRE(fails(ronda_rank(group, nullptr), RONDA_ERROR_INPUT, "rank is NULL"));
  REQUIRE(fails(ronda_size(group, nullptr), RONDA_ERROR_INPUT, "size is NULL"));
  REQUIRE(fails(ronda_allreduce(nullptr, "a", &data, 1, RONDA_FLOAT32, RONDA_SUM), RONDA_ERROR_INPUT, "group"));
  REQUIRE(fails(ronda_allreduce(group, "a", nullptr, 1, RONDA_FLOAT32, RONDA_SUM), RONDA_ERROR_INPUT, "data"));
  REQUIRE(fails(ronda_allreduce_async(group, "a", &data, 1, RONDA_FLOAT32, RONDA_SUM, nullptr), RONDA_ERROR_INPUT,
                "request is NULL"));
  REQUIRE(fails(ronda_broadcast(group, "a", &data, 1, RONDA_FLOAT32, -1), RONDA_ERROR_LOGIC, "rank -1"));
  REQUIRE(fails(ronda_allgather(group, "a", nullptr, &data, 1, RONDA_FLOAT32), RONDA_ERROR_INPUT, "NULL"));
  for (const std::size_t many : {std::size_t{1} << 62, (std::size_t{1} << 62) + 2, SIZE_MAX})
    REQUIRE(fails(ronda_allreduce(group, "a", &data, many, RONDA_FLOAT32, RONDA_SUM), RONDA_ERROR_INPUT,
                  std::to_string(many).c_str()));
  REQUIRE(fails(ronda_allgather(group, "a", &data, &data, SIZE_MAX / 4, RONDA_FLOAT32), RONDA_ERROR_INPUT, "memory"));
  REQUIRE(ronda_allreduce_together(group, nullptr, nullptr, 1, RONDA_SUM, &request) == RONDA_ERROR_INPUT);
  REQUIRE(request == nullptr);
  REQUIRE(fails(ronda_wait(nullptr), RONDA_ERROR_INPUT, "NULL"));
  REQUIRE(fails(ronda_test(nullptr, &number), RONDA_ERROR_INPUT, "NULL"));
  REQUIRE(fails(ronda_split(group, "parts", 0, 0, nullptr), RONDA_ERROR_INPUT, "NULL"));
  REQUIRE(ronda_close(nullptr) == RONDA_ERROR_INPUT);
  REQUIRE(ronda_finalize(nullptr) == RONDA_ERROR_INPUT);
}

}  // namespace

int main() {
  options_have_a_size();
  ronda_group* world = nullptr;
  ronda_options options;
  REQUIRE(ronda_default_options(&options, sizeof options) == RONDA_OK);
  options.size = 3;
  REQUIRE(ronda_init(nullptr, nullptr) == RONDA_ERROR_INPUT);
  REQUIRE(fails(ronda_init(&options, &world), RONDA_ERROR_INPUT, "size of 3"));  // and MPI is not begun
  REQUIRE(world == nullptr);
  options.size = sizeof options;
  options.batch_bytes = 3;
  REQUIRE(fails(ronda_init(&options, &world), RONDA_ERROR_INPUT, "power of two"));
  options.batch_bytes = 0;
  options.gather_seconds = std::nan("");
  REQUIRE(fails(ronda_init(&options, &world), RONDA_ERROR_INPUT, "gather_seconds"));
  options.gather_seconds = -1;
  options.missing_limit = -1;
  REQUIRE(fails(ronda_init(&options, &world), RONDA_ERROR_INPUT, "missing_limit"));
  options.missing_limit = 60;
  options.communication_timeout = std::numeric_limits<double>::quiet_NaN();
  REQUIRE(fails(ronda_init(&options, &world), RONDA_ERROR_INPUT, "communication_timeout"));
  options.communication_timeout = 60;
  REQUIRE(fails(ronda_init_comm(0, &options, &world), RONDA_ERROR_LOGIC, "not initialised"));
  REQUIRE(ronda_init(&options, &world) == RONDA_OK);
  ronda_group* const first = world;
  REQUIRE(fails(ronda_init(&options, &world), RONDA_ERROR_LOGIC, "ronda_init_comm"));
  REQUIRE(world == first);  // which would be lost
  nothing_takes_null(world);

  int rank = -1, size = 0;
  REQUIRE(ronda_rank(world, &rank) == RONDA_OK && ronda_size(world, &size) == RONDA_OK);
  float data = 1;
  REQUIRE(ronda_allreduce(world, "works still", &data, 1, RONDA_FLOAT32, RONDA_SUM) == RONDA_OK);
  REQUIRE(data == static_cast<float>(size));
  if (size > 1 && rank == 0)  // the others close instead
    REQUIRE(ronda_allreduce(world, "alone", &data, 1, RONDA_FLOAT32, RONDA_SUM) != RONDA_OK);
  REQUIRE(ronda_finalize(world) == RONDA_OK);
  REQUIRE(fails(ronda_init_comm(0, &options, &world), RONDA_ERROR_LOGIC, "finalized"));
  ronda_kv* store = nullptr;
  REQUIRE(fails(ronda_kv_open_comm(0, nullptr, &store), RONDA_ERROR_LOGIC, "finalized"));
  REQUIRE(store == nullptr);
  return mistakes == 0 ? 0 : 1;
}
