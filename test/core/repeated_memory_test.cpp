// Addresses that show a piece of memory again and again.
#include <ronda/core/error.hpp>
#include <ronda/core/repeated_memory.hpp>

#include "support/catch.hpp"

#include <sys/mman.h>

#include <cstddef>

using namespace ronda;

TEST_CASE("repeated memory has the same bytes a period apart, and zeros at first") {
  const std::size_t page = whole_pages(1), period = 3 * page, bytes = 8 * page - 5;
  const Buffer memory = repeated_memory({period, bytes, 0});
  CHECK(memory.bytes() == bytes);
  for (std::size_t i = 0; i < bytes; ++i) REQUIRE(memory.data()[i] == std::byte{0});
  for (const std::size_t at : {std::size_t{0}, std::size_t{5}, page, period - 1}) {
    memory.data()[period + at] = static_cast<std::byte>(at % 251 + 1);
    CHECK(memory.data()[at] == memory.data()[period + at]);
    if (2 * period + at < bytes) CHECK(memory.data()[2 * period + at] == memory.data()[at]);
  }
}

TEST_CASE("the rest is shown once, behind") {
  const std::size_t page = whole_pages(1);
  const Repetition repetition{2 * page, 5 * page, page + 9};
  CHECK(repetition.memory() == 4 * page);
  auto* const mapping = static_cast<std::byte*>(
      ::mmap(nullptr, repetition.memory(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  REQUIRE(mapping != MAP_FAILED);
  const Buffer memory = repeat(mapping, repetition);
  for (std::size_t at = 0; at < repetition.addresses(); at += page / 2) {
    memory.data()[at] = static_cast<std::byte>(at / page + 1);
    CHECK(mapping[repetition.place(at)] == memory.data()[at]);
  }
  CHECK(repetition.place(5 * page + 3) == 2 * page + 3);
  CHECK(mapping[0] == std::byte{5});  // the last that was written there
  ::munmap(mapping, repetition.memory());
  const Buffer only_rest = repeated_memory({0, 0, 10});
  CHECK(only_rest.bytes() == 10);
}

TEST_CASE("a part of a shared mapping is repeated, and stays when the mapping goes") {
  const std::size_t page = whole_pages(1);
  auto* const mapping =
      static_cast<std::byte*>(::mmap(nullptr, 4 * page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  REQUIRE(mapping != MAP_FAILED);
  const Buffer memory = repeat(mapping + 2 * page, {2 * page, 5 * page, 0});
  mapping[2 * page + 7] = std::byte{9};
  CHECK(memory.data()[4 * page + 7] == std::byte{9});
  ::munmap(mapping, 4 * page);
  CHECK(memory.data()[2 * page + 7] == std::byte{9});
}

TEST_CASE("what is not whole pages, or not shared, is refused") {
  const std::size_t page = whole_pages(1);
  CHECK_THROWS_AS(repeated_memory({page + 1, 2 * page, 0}), LogicError);
  CHECK_THROWS_AS(repeated_memory({page, 2 * page + 1, page}), LogicError);
  auto* const mine =
      static_cast<std::byte*>(::mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  REQUIRE(mine != MAP_FAILED);
  CHECK_THROWS_AS(repeat(mine, {page, 2 * page, 0}), ResourceError);
  ::munmap(mine, page);
}
