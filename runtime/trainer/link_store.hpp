#pragma once
#include <filesystem>
#include <string>

#include <ronda/collectives/communicator.hpp>
#include <ronda/collectives/world.hpp>

namespace ronda {

/// Keeps what messages cost (`Communicator::link_costs`) from one run to the next in the user's cache: a file for these
/// hosts, with so many ranks on each, and this way of moving messages on. Rank 0 reads and writes; all ranks get the
/// same.
class LinkStore {
 public:
  LinkStore(Communicator communicator, Progress progress);

  /// The communicator gets what is known; nothing where that is not there or damaged. Collective.
  void load();
  /// After load, on rank 0: what is wrong with the file; empty where nothing is.
  [[nodiscard]] const std::string& damage() const noexcept { return damage_; }
  /// Writes what the communicator knows by now, where that is new; a damaged file goes in any case. A cache that cannot
  /// be written is no error. Not collective.
  void keep();

 private:
  void read();

  Communicator communicator_;
  std::filesystem::path file_;  ///< empty: there is no cache, or this is not rank 0
  std::string known_;           ///< what the file has, as text
  std::string damage_;
};

}  // namespace ronda
