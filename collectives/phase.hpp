#pragma once
#include <cstdint>
#include <memory>
#include <string_view>

#include <ronda/collectives/communicator.hpp>

namespace ronda {

class Recorder;

/// What a rank works on while it takes no part in collectives.
enum class Activity : std::uint8_t { running, starting, planning, evaluating, writing, reading };
[[nodiscard]] std::string_view name_of(Activity activity) noexcept;

/// Work that a rank does apart from the others and that may take long: from here to the end of its scope, ranks that
/// wait for this one in a collective give it `limit` seconds instead of the communication timeout, as long as its
/// process shows signs of life. Scopes nest. Not collective.
///
///     const Phase phase(communicator, Activity::writing);
///     if (communicator.rank() == 0) write_everything();  // the others wait behind it
class Phase {
 public:
  /// @param limit  seconds; 0: ten times the communication timeout
  Phase(const Communicator& communicator, Activity activity, double limit = 0);
  Phase(const Phase&) = delete;
  ~Phase();

 private:
  std::shared_ptr<Recorder> recorder_;  ///< null: nobody watches
  std::uint64_t before_ = 0, since_before_ = 0, limit_before_ = 0;
};

}  // namespace ronda
