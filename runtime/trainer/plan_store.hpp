#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/event_sink.hpp>
#include <ronda/runtime/strategy/step/strategy.hpp>
#include <ronda/runtime/trainer/link_store.hpp>

namespace ronda {

/// Keeps the choices made by timing from one run to the next: in a file that the user names, or in the user's cache,
/// one file for each kind of machine and configuration. Rank 0 reads and writes; all ranks get the same. The user's
/// file also holds the link costs; in the cache these have a file of their own, the LinkStore's.
class PlanStore {
 public:
  /// @param file         the user's plan file; empty: the cache
  /// @param environment  all that timings depend on: processor, library, threads, ranks per node
  PlanStore(const World& world, std::filesystem::path file, std::map<std::string, std::string> environment);

  /// Returns the stored choices, and sets the communicator's link costs from the store. Collective; throws InputError,
  /// agreed, if the user's file is damaged or from another environment.
  [[nodiscard]] Picks load();
  /// Call it after load, on rank 0: describes each damage of a cached file, one per line. Such a file is written anew;
  /// damage in the user's own file is an error.
  [[nodiscard]] std::vector<std::string> damages() const;
  /// Path of the user's file if it existed (then the plan must match it); otherwise empty.
  [[nodiscard]] std::string given_name() const { return given_ ? file_.string() : std::string(); }

  /// Compares the plan with the user's file if it existed (InputError, agreed, on the first line that differs);
  /// otherwise writes the choices. Notes on rank 0 whether timed choices are stored for the next run. A cache that
  /// cannot be written is not an error. Collective.
  void keep(const Strategy& strategy, EventSink& sink);

 private:
  void check_links();
  [[nodiscard]] std::string links() const;
  void compare(const Strategy& strategy) const;
  void write(const Strategy& strategy) const;

  Communicator communicator_;
  LinkStore link_store_;
  std::filesystem::path file_;
  std::map<std::string, std::string> environment_;
  bool users_ = false;  ///< the file is the user's, not the cache's
  bool given_ = false;
  Picks known_;
  std::string known_links_;  ///< as text; empty: none
  std::vector<std::string> entries_;
  std::string damage_;  ///< damage of the cached file; empty: none
};

}  // namespace ronda
