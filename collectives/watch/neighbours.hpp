#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ronda/collectives/watch/diagnosis.hpp>
#include <ronda/collectives/watch/recorder.hpp>

namespace ronda {

/// Records of a rank that are looked at for where ranks diverged.
inline constexpr std::size_t looked_back = record_ring / 2;
/// Seconds without a beat after which a process counts as stopped.
inline constexpr double silence = 1.5;

/// The other ranks of this host, seen through their records. Used by one thread at a time.
class Neighbours {
 public:
  /// Before the ranks have met: those of a launcher's job, whose records lie beside this rank's.
  explicit Neighbours(std::shared_ptr<Recorder> recorder);
  /// MPI has told who is here.
  /// @param size  of the job
  /// @param here  paths of records by rank
  void meet(int size, const std::map<int, std::string>& here);

  /// Opens the records of ranks that were not seen yet. Before the ranks have met, an earlier job's may still lie
  /// there; it is left out.
  void find();
  /// Reads what has changed.
  void refresh();

  [[nodiscard]] bool sees(int rank) const { return views_[static_cast<std::size_t>(rank)] != nullptr; }
  /// What a rank that is seen is at, into `report`; nothing where somebody has cut its record off.
  void describe(int rank, RankReport& report);
  /// Whether a rank here has an alarm, or was asked by another host.
  [[nodiscard]] bool ask() const;
  /// Whether a rank here that lives has an alarm.
  [[nodiscard]] bool alarmed() const;
  /// Whether a rank here says that the job is over.
  [[nodiscard]] bool over() const;
  /// Whether this rank is the lowest here that has an alarm, or where none has, the lowest that lives.
  /// @param alarmed  whether this rank has one
  [[nodiscard]] bool this_rank_speaks(bool alarmed) const;
  /// All that are seen get to know that the job is over.
  void tell_over() const;

 private:
  using View = std::unique_ptr<RecordView>;
  [[nodiscard]] bool lives(const View& view) const;
  [[nodiscard]] bool is_of_this_job(const RecordHead& head) const noexcept;

  std::shared_ptr<Recorder> recorder_;
  int rank_;
  bool met_ = false;
  std::vector<std::string> paths_;  ///< by rank; empty where it is not known to be on this host
  std::vector<View> views_;         ///< by rank; null: not seen
};

}  // namespace ronda
