#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/coordinator/detail/descriptor.hpp>

namespace ronda {

/// The names that all ranks know, each by a small number, and which ranks take part: the same on every rank, because it
/// changes only by what all ranks hear, in the same order.
///
/// A name that is announced for the first time gets the next number and the descriptor that it came with. From then on
/// a rank that submits it looks here: where its own descriptor is the same, a bit tells the others. Where it is another
/// one, the rank announces that, and the name is *contested*: every rank announces what it has, once it has it. If all
/// have the same, the name has a new descriptor (a last batch of another shape); if not, it fails on all ranks.
class NameTable {
 public:
  /// A bit for each, in every cycle.
  static constexpr std::size_t capacity = 65536;

  /// @param name_of_rank  for errors: `rank 2 on node17`
  NameTable(int ranks, std::function<std::string(int)> name_of_rank);

  /// What some ranks have under a contested name.
  struct Variant {
    Descriptor descriptor;
    RankSet ranks;
  };
  struct Name {
    std::string text;
    Descriptor descriptor;
    std::uint64_t version = 1;  ///< of the descriptor
    bool contested = false;
    std::vector<Variant> variants;  ///< as far as they are known, while it is contested

    [[nodiscard]] bool announced_by(int rank) const noexcept {
      return std::ranges::any_of(variants, [&](const Variant& variant) { return variant.ranks.contains(rank); });
    }
  };
  [[nodiscard]] std::optional<std::uint32_t> find(std::string_view text) const;
  [[nodiscard]] const Name& operator[](std::uint32_t id) const { return names_[id]; }
  [[nodiscard]] std::size_t size() const noexcept { return names_.size(); }

  /// A name that failed on all ranks, and why.
  struct Failure {
    std::string name, text;
  };
  /// What a round of announcements has changed.
  struct Changes {
    std::vector<std::uint32_t> contested;  ///< that were not before
    std::vector<Failure> failures;
    bool all_joined = false;  ///< that have not closed; now nobody is any more. `last_to_join` says who was the last
    bool all_closed = false;
    std::optional<std::string> left;  ///< a rank has gone: nothing more can be done; why
  };
  /// One round: what the ranks announce, the same and in the same order on all of them.
  Changes hear(std::span<const Announcement> announcements);

  [[nodiscard]] bool has_joined(int rank) const noexcept { return joined_.contains(rank); }
  [[nodiscard]] bool anybody_joined() const noexcept { return !joined_.empty(); }
  [[nodiscard]] bool has_closed(int rank) const noexcept { return closed_.contains(rank); }
  [[nodiscard]] const RankSet& joined() const noexcept { return joined_; }
  [[nodiscard]] const RankSet& closed() const noexcept { return closed_; }
  /// A contested name is given up, on all ranks: it has the descriptor that it had before.
  void forget_contest(std::uint32_t id);
  [[nodiscard]] int last_to_join() const noexcept { return last_to_join_; }

  [[nodiscard]] std::string text_of(const RankSet& ranks) const { return ranks.text(name_of_rank_); }

 private:
  void hear_tensors(const Announcement& announcement, Changes& changes);
  void settle(Changes& changes);
  [[nodiscard]] std::string disagreement(const Name& name) const;

  const int ranks_;
  const std::function<std::string(int)> name_of_rank_;
  std::vector<Name> names_;
  std::map<std::string, std::uint32_t, std::less<>> ids_;
  std::vector<std::uint32_t> contested_;
  RankSet joined_, closed_;
  int last_to_join_ = -1;
};

}  // namespace ronda
