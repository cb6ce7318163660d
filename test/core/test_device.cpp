#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <ronda/runtime/core/device_context.hpp>
#include <ronda/runtime/core/error.hpp>

#include "support/catch.hpp"

using namespace ronda;

TEST_CASE("the processor's context gives zeroed memory and copies at once") {
  const auto cpu = make_cpu_context(3);
  REQUIRE(cpu->device() == Device{});
  const auto stream = cpu->make_stream(StreamPriority::usual);
  REQUIRE(stream->threads() == 3);
  const Buffer memory = cpu->allocate(1000), staging = cpu->allocate_staging(1000);
  REQUIRE(std::all_of(memory.data(), memory.data() + 1000, [](std::byte b) { return b == std::byte{0}; }));
  std::fill_n(staging.data(), 1000, std::byte{7});
  cpu->copy(staging.data(), memory.data(), 999, *stream);
  REQUIRE(memory.data()[998] == std::byte{7});
  REQUIRE(memory.data()[999] == std::byte{0});
  cpu->copy(nullptr, nullptr, 0, *stream);
}

TEST_CASE("where there is no GPU to use, the reason is said, and is the error of who wants one") {
  const GpuSurvey survey = find_gpus();
  if (!survey.built) {
    REQUIRE(survey.reason.find("no CUDA") != std::string::npos);
    REQUIRE(survey.runtime_version == 0);
  } else {
    REQUIRE(survey.runtime_version >= 12000);
    if (survey.driver_version == 0) REQUIRE(survey.reason.find("no NVIDIA driver") != std::string::npos);
  }
  REQUIRE(survey.reason.empty() == !survey.gpus.empty());
  if (survey.reason.empty()) return;
  try {
    static_cast<void>(make_cuda_context(0));
    FAIL("a GPU was found that the survey does not have");
  } catch (const InputError& error) {
    REQUIRE(std::string(error.what()).find(survey.reason) != std::string::npos);
  }
}

TEST_CASE("CUDA's version numbers read as people write them") {
  REQUIRE(cuda_version_text(13010) == "13.1");
  REQUIRE(cuda_version_text(12080) == "12.8");
}

namespace {

/// Counts how often the host waits.
struct Counter final : Completion {
  bool poll(std::uint64_t) override { return true; }
  void wait(std::uint64_t) override { ++waits; }
  int waits = 0;
};

}  // namespace

TEST_CASE("an event that no device can wait for holds no stream; one that has happened holds any") {
  CpuStream stream;
  Counter counter;
  REQUIRE(Event().hold(stream));
  const Event event(counter, 1);
  REQUIRE_FALSE(event.hold(stream));
  stream.wait(event);
  REQUIRE(counter.waits == 1);
}
