#pragma once
#include <cstdint>
#include <memory>
#include <string_view>

#include <ronda/collectives/communicator.hpp>

namespace ronda {

class Recorder;

/// The activity of a rank between collectives.
enum class Activity : std::uint8_t { running, starting, planning, evaluating, writing, reading };
[[nodiscard]] std::string_view name_of(Activity activity) noexcept;

/// Marks a scope in which a rank works independently of the others, possibly for long. Ranks that wait for it in a
/// collective then wait up to `limit` seconds instead of the communication timeout, as long as its process shows signs
/// of life. Scopes nest. Not collective.
///
///     const Phase phase(communicator, Activity::writing);
///     if (communicator.rank() == 0) write_everything();  // the other ranks wait in the next collective
class Phase {
 public:
  /// @param limit  seconds; 0: ten times the communication timeout
  Phase(const Communicator& communicator, Activity activity, double limit = 0);
  Phase(const Phase&) = delete;
  ~Phase();

 private:
  std::shared_ptr<Recorder> recorder_;  ///< null: there is no watchdog
  std::uint64_t before_ = 0, since_before_ = 0, limit_before_ = 0;
};

}  // namespace ronda
