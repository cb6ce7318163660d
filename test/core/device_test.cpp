#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <ronda/core/device_context.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/number.hpp>

#include "support/catch.hpp"
#include "support/host_hash.hpp"

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

TEST_CASE("the processor adds numbers of every type, in place or apart, with any number of threads") {
  constexpr std::size_t count = 1037;
  const Shape shape{std::int64_t{count}};
  std::vector<float> more(count);
  for (std::size_t i = 0; i < count; ++i) more[i] = 0.25F * static_cast<float>(i % 7);
  const auto check = [&]<class From, class To>(std::type_identity<From>, std::type_identity<To>) {
    for (const int threads : {1, 3})
      for (const bool adds : {false, true}) {
        const auto cpu = make_cpu_context(threads);
        const auto stream = cpu->make_stream(StreamPriority::usual);
        std::vector<From> from(count);
        std::vector<To> to(count);
        for (std::size_t i = 0; i < count; ++i) from[i] = as_number<From>(static_cast<float>(i % 5) - 2);
        cpu->add(Tensor({shape, dtype_of<From>, {}}, from.data()), adds ? more.data() : nullptr,
                 Tensor({shape, dtype_of<To>, {}}, to.data()), *stream);
        for (std::size_t i = 0; i < count; ++i)
          REQUIRE(as_float(to[i]) == static_cast<float>(i % 5) - 2 + (adds ? more[i] : 0));  // exact in each type
      }
  };
  check(std::type_identity<float>(), std::type_identity<float>());
  check(std::type_identity<Float16>(), std::type_identity<float>());
  check(std::type_identity<Float16>(), std::type_identity<Float16>());
  check(std::type_identity<BFloat16>(), std::type_identity<BFloat16>());
  const auto cpu = make_cpu_context(2);
  const auto stream = cpu->make_stream(StreamPriority::usual);
  std::vector<float> one(count, 1), sums = more;
  const Tensor ones{std::span(one)}, in_place{std::span(sums)};
  cpu->add(ones, sums.data(), in_place, *stream);  // sums += ones
  cpu->add(ones, sums.data(), ones, *stream);      // ones += sums
  for (std::size_t i = 0; i < count; ++i) {
    REQUIRE(sums[i] == more[i] + 1);
    REQUIRE(one[i] == more[i] + 2);
  }
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

TEST_CASE("a device's hash tells every bit that flips, and words that change places") {
  std::vector<float> numbers(3000);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i % 50) / 7;
  const auto hashes = [&] {
    const auto bytes = std::as_bytes(std::span(numbers));
    std::vector<std::span<const std::byte>> pieces{bytes.first(40), bytes.subspan(40, 0), bytes.subspan(40)};
    std::vector<std::uint64_t> found(3);
    test::HostHash(pieces).run(found);
    return found;
  };
  const auto before = hashes();
  CHECK(before[1] == 0);  // of no words
  CHECK(hashes() == before);
  for (const std::size_t word : {0, 9, 10, 1234, 2999})
    for (std::uint32_t bit = 0; bit < 32; ++bit) {
      const float number = numbers[word];
      numbers[word] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(number) ^ (1U << bit));
      const auto after = hashes();
      CHECK((after[0] != before[0]) == (word < 10));
      CHECK((after[2] != before[2]) == (word >= 10));
      numbers[word] = number;
    }
  std::swap(numbers[20], numbers[21]);
  CHECK(hashes()[2] != before[2]);
  std::swap(numbers[20], numbers[21]);
  CHECK(hashes() == before);
  const std::vector<std::span<const std::byte>> odd{std::as_bytes(std::span(numbers)).first(6)};
  CHECK_THROWS_AS(test::HostHash(odd), LogicError);
  CHECK_THROWS_AS(make_cpu_context(1)->make_hash(odd), LogicError);
}
