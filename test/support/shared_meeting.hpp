#pragma once
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/collectives/communicator.hpp>

namespace ronda::test {

/// Where ranks of one host give each other texts by memory that they share: without MPI, so that any thread may.
class SharedMeeting {
 public:
  static constexpr std::size_t most = std::size_t{1} << 20;  ///< bytes of a text

  /// Collective.
  explicit SharedMeeting(Communicator communicator);
  SharedMeeting(const SharedMeeting&) = delete;

  /// Everybody's text, by rank. Of one thread at a time, and so on all ranks. Empty where it was abandoned meanwhile.
  std::vector<std::string> gather(std::string_view text);
  /// Nobody comes any more: who waits on this rank goes on.
  void abandon() noexcept { abandoned_ = true; }

 private:
  struct Place;
  [[nodiscard]] bool wait(std::uint64_t& word, std::uint64_t turn) const;

  Buffer memory_;
  std::vector<Place*> places_;  ///< by rank
  Place* own_;
  std::uint64_t turn_ = 0;
  std::atomic<bool> abandoned_{false};
};

}  // namespace ronda::test
