#pragma once
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <ronda/collectives/watch/diagnosis.hpp>
#include <ronda/collectives/watch/side_channel.hpp>
#include <ronda/core/function_ref.hpp>

namespace ronda {

/// What the ranks of this host and those of others tell each other, by way of a SideChannel: greetings at first, and
/// what each is at once somebody has an alarm. Used by one thread at a time.
class HostVoice {
 public:
  /// @param channel  null: there is no other host, or no way to it; then nothing is heard and nobody is told
  explicit HostVoice(std::unique_ptr<SideChannel> channel = nullptr) : channel_(std::move(channel)) {}

  [[nodiscard]] bool has_others() const noexcept { return channel_ != nullptr; }
  /// Takes in what has come.
  void listen(double now);
  /// Whether a rank of another host has an alarm.
  [[nodiscard]] bool heard_alarm(double now) const noexcept;
  /// The lowest such rank.
  [[nodiscard]] std::optional<int> lowest_alarmed(double now) const;
  [[nodiscard]] bool heard_over() const noexcept { return channel_ != nullptr && channel_->over(); }
  /// What another host has told of `rank`, into `report`.
  void describe(int rank, double now, RankReport& report) const;
  /// Ranks of hosts from which nothing has come.
  [[nodiscard]] std::vector<int> unheard() const;

  enum class Part : std::uint8_t {
    silent,    ///< another rank speaks for this host
    speaks,    ///< this one does
    inquires,  ///< it does not, and tells what it is at all the same, since it asks others
  };
  /// Says what is to be said now: what the ranks here are at, if that is wanted, at most a few times a second, or a
  /// greeting.
  void talk(double now, Part part, bool tells, FunctionRef<std::vector<RankState>()> states);
  /// All others get to know that the job is over.
  void say_over();

 private:
  std::unique_ptr<SideChannel> channel_;
  double told_at_ = -1;
  bool spoke_ = false;
  double next_greeting_ = 0, greeting_gap_ = 0;
};

}  // namespace ronda
