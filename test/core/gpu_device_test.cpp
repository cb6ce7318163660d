#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <ronda/core/device_context.hpp>
#include <ronda/core/error.hpp>

#include "support/catch.hpp"
#include "support/host_hash.hpp"

using namespace ronda;
using ronda::test::HostHash;

TEST_CASE("a GPU gives zeroed memory, and copies arrive in the order of the stream") {
  const auto gpu = make_cuda_context(0);
  const auto stream = gpu->make_stream(StreamPriority::usual);
  const std::size_t bytes = 1 << 20;
  const Buffer there = gpu->allocate(bytes), here = gpu->allocate_staging(bytes), back = gpu->allocate_staging(bytes);
  std::memset(back.data(), 1, bytes);
  gpu->copy(there.data(), back.data(), bytes, *stream);
  stream->synchronize();
  REQUIRE(std::memcmp(back.data(), here.data(), bytes) == 0);  // all zero
  std::memset(here.data(), 42, bytes);
  gpu->copy(here.data(), there.data(), bytes, *stream);
  gpu->copy(there.data(), back.data(), bytes, *stream);
  const Event done = stream->record();
  done.wait();
  REQUIRE(done.ready());
  REQUIRE(std::memcmp(back.data(), here.data(), bytes) == 0);
}

TEST_CASE("a stream waits for another's event, also for one whose place in the ring was taken again") {
  const auto gpu = make_cuda_context(0);
  const auto first = gpu->make_stream(StreamPriority::usual), second = gpu->make_stream(StreamPriority::high);
  const std::size_t bytes = 64 << 20;
  const Buffer from = gpu->allocate_staging(bytes), there = gpu->allocate(bytes), back = gpu->allocate_staging(bytes);
  std::memset(from.data(), 9, bytes);
  gpu->copy(from.data(), there.data(), bytes, *first);
  const Event copied = first->record();
  for (int i = 0; i < 3000; ++i) static_cast<void>(first->record());
  second->wait(copied);
  gpu->copy(there.data(), back.data(), bytes, *second);
  second->synchronize();
  REQUIRE(std::memcmp(back.data(), from.data(), bytes) == 0);
  REQUIRE(copied.ready());
}

TEST_CASE("streams that are recorded together wait for one another; events from before stay good, on any thread") {
  const auto gpu = make_cuda_context(0);
  const auto first = gpu->make_stream(StreamPriority::usual), second = gpu->make_stream(StreamPriority::high);
  const std::size_t bytes = 16 << 20;
  const Buffer from = gpu->allocate_staging(bytes), there = gpu->allocate(bytes), back = gpu->allocate_staging(bytes);
  const Event before = first->record();
  Event inside;
  const auto recording = gpu->record(*first, [&] {
    for (int i = 0; i < 300; ++i) inside = first->record();  // more than the ring has places
    gpu->copy(from.data(), there.data(), bytes, *first);
    inside = first->record();
    second->wait(inside);
    gpu->copy(there.data(), back.data(), bytes, *second);
    first->wait(second->record());
  });
  for (const int value : {3, 4}) {
    std::memset(from.data(), value, bytes);
    recording->replay(*first);
    first->synchronize();
    REQUIRE(std::memcmp(back.data(), from.data(), bytes) == 0);
  }
  bool ready = false;
  std::thread([&] { ready = before.ready(); }).join();
  REQUIRE(ready);
  REQUIRE_THROWS_AS(inside.ready(), LogicError);
}

TEST_CASE("running out of a GPU's memory is an error that says how much was asked for") {
  const auto gpu = make_cuda_context(0);
  const std::size_t bytes = std::size_t{1} << 50;
  try {
    static_cast<void>(gpu->allocate(bytes));
    FAIL("there is no such GPU");
  } catch (const ResourceError& error) {
    REQUIRE(std::string(error.what()).find(std::to_string(bytes)) != std::string::npos);
  }
  REQUIRE(gpu->allocate(1024).bytes() == 1024);  // the error is over
}

TEST_CASE("a GPU that is not there is refused by its number") {
  REQUIRE_THROWS_AS(make_cuda_context(-1), InputError);
  REQUIRE_THROWS_AS(make_cuda_context(1000), InputError);
}

TEST_CASE("a GPU hashes pieces of its memory as the host does, as they are in the order of the stream") {
  const auto gpu = make_cuda_context(0);
  const auto stream = gpu->make_stream(StreamPriority::usual);
  const std::size_t words = (5 << 20) + 3;
  const Buffer there = gpu->allocate(words * sizeof(float)), here = gpu->allocate_staging(there.bytes());
  for (std::size_t i = 0; i < words; ++i) reinterpret_cast<float*>(here.data())[i] = static_cast<float>(i % 1000) / 7;
  const auto pieces_of = [&](const Buffer& buffer) {
    std::vector<std::span<const std::byte>> pieces;
    std::size_t at = 0;
    for (const std::size_t count : {std::size_t{1}, std::size_t{0}, std::size_t{100}, words - 101}) {
      pieces.emplace_back(buffer.data() + at * sizeof(float), count * sizeof(float));
      at += count;
    }
    return pieces;
  };
  std::vector<std::uint64_t> expected(4), found(4);
  HostHash(pieces_of(here)).run(expected);
  const auto hash = gpu->make_hash(pieces_of(there));
  gpu->copy(here.data(), there.data(), there.bytes(), *stream);
  hash->run(found, *stream);
  CHECK(found == expected);
}
