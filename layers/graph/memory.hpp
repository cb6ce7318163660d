#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <ronda/layers/buffer_plan.hpp>

namespace ronda::graph {

/// Collects the buffers of a program while it is planned.
class Memory {
 public:
  /// A new buffer, not yet in use.
  std::size_t add(std::string owner, std::size_t bytes, bool scratch = false);
  /// The buffer is in use at `time`, and since its first use. Times of one buffer do not go back.
  void use(std::size_t buffer, std::uint32_t time);
  /// In use at `time`, whatever was before: a new stretch.
  void use_alone(std::size_t buffer, std::uint32_t time);
  /// `later` is to take the place of `earlier` where it is first used when that is last used and they are as large: for
  /// a call that works in place. Once all uses are known.
  void share(std::size_t earlier, std::size_t later);

  [[nodiscard]] std::size_t bytes(std::size_t buffer) const { return requests_[buffer].bytes; }
  /// All that was asked for; a buffer that took another's place is empty.
  [[nodiscard]] const std::vector<BufferRequest>& requests() const noexcept { return requests_; }
  /// The buffer whose place a buffer has: its own, or what it was shared with.
  [[nodiscard]] std::size_t place_of(std::size_t buffer) const;

 private:
  std::vector<BufferRequest> requests_;
  std::vector<std::size_t> taken_;  ///< whose place a buffer has taken; itself: nobody's
};

}  // namespace ronda::graph
