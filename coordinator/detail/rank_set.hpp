#pragma once
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace ronda {

/// Some ranks of a group, as ranges: what all ranks do alike takes the same room for any number of them.
class RankSet {
 public:
  struct Range {
    int first = 0, last = 0;  ///< both belong to it
    bool operator==(const Range&) const = default;
  };

  RankSet() = default;
  explicit RankSet(int rank) : ranges_{{rank, rank}} {}
  [[nodiscard]] static RankSet all(int size) { return size == 0 ? RankSet() : RankSet(Range{0, size - 1}); }

  void add(Range range);
  void add(const RankSet& others);
  void clear() noexcept { ranges_.clear(); }
  /// Those of the ranks 0 to size - 1 that are not in it.
  [[nodiscard]] RankSet complement(int size) const;

  [[nodiscard]] bool empty() const noexcept { return ranges_.empty(); }
  [[nodiscard]] bool contains(int rank) const noexcept;
  [[nodiscard]] std::size_t size() const noexcept;
  [[nodiscard]] int first() const noexcept { return ranges_.front().first; }  ///< of one that is not empty
  [[nodiscard]] int last() const noexcept { return ranges_.back().last; }     ///< likewise
  [[nodiscard]] std::span<const Range> ranges() const noexcept { return ranges_; }
  bool operator==(const RankSet&) const = default;

  /// `rank 0 on a, rank 3 on b`; of many the first few and how many more.
  [[nodiscard]] std::string text(const std::function<std::string(int)>& name_of_rank) const;

 private:
  explicit RankSet(Range range) : ranges_{range} {}
  std::vector<Range> ranges_;  ///< in order, with gaps between them
};

}  // namespace ronda
