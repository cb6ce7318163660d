#pragma once
#include <filesystem>
#include <string>

#include <ronda/collectives/communicator.hpp>
#include <ronda/collectives/world.hpp>

namespace ronda {

/// Keeps link costs (`Communicator::link_costs`) from one run to the next in the user's cache: one file for these
/// hosts, this number of ranks on each, and this progress mode. Rank 0 reads and writes; all ranks get the same.
class LinkStore {
 public:
  LinkStore(Communicator communicator, Progress progress);

  /// Sets the communicator's link costs from the file; does nothing if the file is missing or damaged. Collective.
  void load();
  /// Call it after load, on rank 0: describes damage of the file; empty if there is none.
  [[nodiscard]] const std::string& damage() const noexcept { return damage_; }
  /// Writes the communicator's current link costs if they are new; always replaces a damaged file. A cache that cannot
  /// be written is not an error. Not collective.
  void keep();

 private:
  void read();

  Communicator communicator_;
  std::filesystem::path file_;  ///< empty: no cache, or not rank 0
  std::string known_;           ///< contents of the file, as text
  std::string damage_;
};

}  // namespace ronda
