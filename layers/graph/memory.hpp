#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <ronda/layers/program.hpp>

namespace ronda::graph {

/// Collects the buffers of a program, and when each is in use, while the program is planned.
class Memory {
 public:
  /// A new buffer, not yet in use.
  std::size_t add(std::string owner, std::size_t bytes, bool scratch = false);
  /// The buffer is in use from its first use to `time`. Times of one buffer do not go back.
  void extend_use(std::size_t buffer, std::uint32_t time);
  /// Adds a use of its own at `time`: between two such uses the buffer keeps nothing.
  void use_once(std::size_t buffer, std::uint32_t time);
  /// For a call that works in place: puts `later` into the memory of `earlier`, if the first use of `later` is the last
  /// use of `earlier` and the sizes are equal. After all uses are known.
  void share_if_possible(std::size_t earlier, std::size_t later);

  [[nodiscard]] std::size_t bytes(std::size_t buffer) const { return requests_[buffer].bytes; }
  /// All buffers; one that uses another's memory is empty.
  [[nodiscard]] const std::vector<BufferRequest>& requests() const noexcept { return requests_; }
  /// The buffer whose memory `buffer` uses: itself, or the one that it shares memory with.
  [[nodiscard]] std::size_t holder_of(std::size_t buffer) const;

 private:
  std::vector<BufferRequest> requests_;
  std::vector<std::size_t> holder_;  ///< of each buffer: the one whose memory it uses; itself: its own memory
};

}  // namespace ronda::graph
