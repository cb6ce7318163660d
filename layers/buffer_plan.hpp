#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ronda {

/// An interval of calls of a program, numbered through forward, the loss and backward. Both ends are included.
struct Interval {
  std::uint32_t from = 0, to = 0;
  [[nodiscard]] bool overlaps(const Interval& other) const noexcept { return from <= other.to && other.from <= to; }
};

/// Memory that must keep its content in these intervals. At other times another buffer may use it.
struct BufferRequest {
  std::string owner;  ///< its purpose: `conv1 output`
  std::size_t bytes = 0;
  std::vector<Interval> used = {};
  bool scratch = false;  ///< used within one call only

  [[nodiscard]] bool overlaps(const BufferRequest& other) const noexcept;
};

/// Where buffers lie in one block of memory.
struct BufferPlan {
  std::vector<std::size_t> offsets;  ///< one per request
  std::size_t bytes = 0;
  std::size_t scratch_bytes = 0;  ///< part of `bytes` that only scratch buffers need
};

/// Places buffers so that those never in use at the same time can share memory. Each takes the lowest free offset;
/// several orders are tried, one of them largest first ("greedy by size" of Pisarchyk and Lee, "Efficient memory
/// management for deep neural net inference", MLSys 2020 workshop); the plan with the fewest bytes is returned.
[[nodiscard]] BufferPlan place_buffers(std::span<const BufferRequest> requests);

}  // namespace ronda
