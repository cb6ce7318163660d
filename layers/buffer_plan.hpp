#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ronda {

/// A stretch of a program's time, which counts its calls: forward, the loss, backward.
struct Stretch {
  std::uint32_t from = 0, to = 0;
  [[nodiscard]] bool meets(const Stretch& other) const noexcept { return from <= other.to && other.from <= to; }
};

/// Memory that must keep its content in some stretches; in between it may be another's.
struct BufferRequest {
  std::string owner;  ///< what it is for: `conv1 output`
  std::size_t bytes = 0;
  std::vector<Stretch> used = {};
  bool scratch = false;  ///< within one call

  [[nodiscard]] bool meets(const BufferRequest& other) const noexcept;
};

/// Where buffers lie in one arena.
struct BufferPlan {
  std::vector<std::size_t> offsets;  ///< by request
  std::size_t bytes = 0;
  std::size_t scratch_bytes = 0;  ///< what the arena would be smaller by without scratch
};

/// Buffers that are never in use at the same time share memory. Each is placed at the lowest offset that is free, in
/// several orders, the largest first among them ("greedy by size" of Pisarchyk and Lee, "Efficient memory management
/// for deep neural net inference", MLSys 2020 workshop); the smallest arena counts.
[[nodiscard]] BufferPlan place_buffers(std::span<const BufferRequest> requests);

}  // namespace ronda
