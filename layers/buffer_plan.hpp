#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ronda {

/// An interval of a program's time, which counts its calls: forward, the loss, backward. Both ends belong to it.
struct Interval {
  std::uint32_t from = 0, to = 0;
  [[nodiscard]] bool overlaps(const Interval& other) const noexcept { return from <= other.to && other.from <= to; }
};

/// Memory that must keep its content in these intervals. At other times another buffer may have it.
struct BufferRequest {
  std::string owner;  ///< what it is for: `conv1 output`
  std::size_t bytes = 0;
  std::vector<Interval> used = {};
  bool scratch = false;  ///< used within one call only

  [[nodiscard]] bool overlaps(const BufferRequest& other) const noexcept;
};

/// Where buffers lie in one block of memory.
struct BufferPlan {
  std::vector<std::size_t> offsets;  ///< by request
  std::size_t bytes = 0;
  std::size_t scratch_bytes = 0;  ///< of `bytes`: needed for scratch alone
};

/// Buffers that are never in use at the same time share memory. Each is placed at the lowest offset that is free, in
/// several orders, the largest first among them ("greedy by size" of Pisarchyk and Lee, "Efficient memory management
/// for deep neural net inference", MLSys 2020 workshop); the smallest result is taken.
[[nodiscard]] BufferPlan place_buffers(std::span<const BufferRequest> requests);

}  // namespace ronda
