#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/event_sink.hpp>
#include <ronda/runtime/strategy/strategy.hpp>
#include <ronda/runtime/trainer/link_store.hpp>

namespace ronda {

/// Keeps what was chosen by timing from one run to the next: in a file that the user names, or in the user's cache, a
/// file for each kind of machine and set-up. Rank 0 reads and writes; all ranks get the same. What messages cost is in
/// the user's file too; beside the cache it has a file of its own, the LinkStore's.
class PlanStore {
 public:
  /// @param file         the user's plan file; empty: the cache
  /// @param environment  what timings depend on: processor, library, threads, ranks a node
  PlanStore(const World& world, std::filesystem::path file, std::map<std::string, std::string> environment);

  /// What is known; the communicator gets what it has of link costs. Collective; throws InputError, agreed, where the
  /// user's file is damaged or from another environment.
  [[nodiscard]] Picks load();
  /// After load, on rank 0: what is wrong with a cached file, a line each. It is made anew; the user's own file would
  /// be an error.
  [[nodiscard]] std::vector<std::string> damages() const;
  /// The user's file, where it was there: then the plan has to be that one. Otherwise empty.
  [[nodiscard]] std::string given_name() const { return given_ ? file_.string() : std::string(); }

  /// Compares with the user's file where it was there (InputError, agreed, on the first line that differs), and
  /// otherwise writes what was chosen; notes on rank 0 whether what was timed is there for the next run. A cache that
  /// cannot be written is no error. Collective.
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
  std::string damage_;  ///< of the cache's file; empty: none
};

}  // namespace ronda
