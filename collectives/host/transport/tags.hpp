#pragma once
#include <bitset>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

namespace ronda {

/// The tags of a group's messages, of which MPI promises 32768. The lower ones are for messages between two ranks
/// alone, in turn, and the last one for what the group gathers to set things up; each of the others belongs to one
/// collective as long as that lives.
class TagPool {
 public:
  static constexpr int all = 32767, of_pairs = 8192, of_meetings = all;
  using InUse = std::bitset<all - of_pairs>;

  /// Of the `number`th message from one rank to another.
  [[nodiscard]] static int of_message(std::uint64_t number) noexcept { return static_cast<int>(number % of_pairs); }

  /// The next one that is free, which all ranks find alike as long as they take in the same order; none where those
  /// that this rank knows to be free are used up: then `renew`.
  [[nodiscard]] std::optional<int> take() noexcept {
    while (next_ < taken_elsewhere_.size() && taken_elsewhere_[next_]) ++next_;
    if (next_ == taken_elsewhere_.size()) return std::nullopt;
    in_use_.set(next_);
    return of_pairs + static_cast<int>(next_++);
  }
  void give_back(int tag) noexcept { in_use_.reset(static_cast<std::size_t>(tag - of_pairs)); }

  [[nodiscard]] const InUse& in_use() const noexcept { return in_use_; }
  /// Begins anew. Ranks end their collectives when they like, so it takes all ranks to know what is free.
  /// @param in_use  on any rank
  void renew(const InUse& in_use) noexcept {
    taken_elsewhere_ = in_use;
    next_ = 0;
  }

 private:
  InUse in_use_, taken_elsewhere_;
  std::size_t next_ = 0;
};

/// A tag that is given back to its pool, if it has one, when this object goes.
class Tag {
 public:
  /// Of no pool.
  explicit Tag(int value) noexcept : value_(value) {}
  Tag(int value, std::shared_ptr<TagPool> pool) noexcept : value_(value), pool_(std::move(pool)) {}
  Tag(Tag&& other) noexcept : value_(other.value_), pool_(std::move(other.pool_)) {}
  Tag& operator=(Tag&& other) noexcept {
    std::swap(value_, other.value_);
    std::swap(pool_, other.pool_);
    return *this;
  }
  ~Tag() {
    if (pool_ != nullptr) pool_->give_back(value_);
  }
  [[nodiscard]] int value() const noexcept { return value_; }

 private:
  int value_;
  std::shared_ptr<TagPool> pool_;
};

}  // namespace ronda
