#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include <ronda/core/parallel.hpp>

namespace ronda {

/// The order of the samples in an epoch. It depends only on (seed, epoch), so every rank computes it without
/// communication, it is the same for any number of ranks, and a resumed run finds its position.
class SampleOrder {
 public:
  /// @param shuffle  false: always 0, 1, 2, …
  SampleOrder(std::size_t size, std::uint64_t seed, bool shuffle) : size_(size), seed_(seed), shuffle_(shuffle) {}

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }
  /// Whether the order may differ between epochs.
  [[nodiscard]] bool shuffles() const noexcept { return shuffle_; }
  /// Writes the permutation of `epoch` (from 1) to `order`, which has size() elements: a Fisher-Yates shuffle with
  /// random numbers by Philox.
  void write(std::uint64_t epoch, std::span<std::uint64_t> order) const;
  /// The same permutation in half the memory, for at most most_short samples.
  void write(std::uint64_t epoch, std::span<std::uint32_t> order) const;
  /// The same permutation piece by piece: draws at least `count` more elements of `order`, or all remaining ones.
  /// @param left  number of elements not drawn yet: size() for the first piece, before which the contents of `order` do
  ///              not matter; then the previous call's result
  /// @return number of elements not drawn yet; 0: the permutation is complete
  std::size_t write_more(std::uint64_t epoch, std::span<std::uint32_t> order, std::size_t left,
                         std::size_t count) const;
  static constexpr std::uint64_t most_short = std::uint64_t{1} << 32;

 private:
  std::size_t size_;
  std::uint64_t seed_;
  bool shuffle_;
};

/// This rank's part of the data: part `index` of `count`. Empty if index equals count, as on a server, which computes
/// nothing.
struct Shard {
  std::size_t index = 0, count = 1;
  [[nodiscard]] bool is_empty() const noexcept { return index == count; }
};

/// A shard's micro-batches in a step: `count` of `all`, from number `first` on. With `all` 0 every shard takes the same
/// number.
struct Deal {
  std::size_t first = 0, count = 0, all = 0;
  bool operator==(const Deal&) const = default;
};

/// The division of an epoch into steps, of a step into the ranks' parts, and of a part into micro-batches.
///
/// The *global batch* k consists of the samples k·G … k·G+G-1 of the epoch's order, for any number of ranks; the last
/// one of an epoch may be shorter. Shard r takes the r-th contiguous part of it; parts are as even as possible. The
/// part is divided into `accumulate` contiguous *micro-batches*; the last ones may be shorter or empty. So every sample
/// is used exactly once per epoch. The parts of six ranks for G = 20, size = 28:
///
///     step 0   |0 1 2|3 4 5|6 7 8 9|10 11 12|13 14 15|16 17 18 19|
///     step 1   |20|21|22 23|24|25|26 27|
class BatchPlan {
 public:
  /// @param size          samples per epoch
  /// @param global_batch  G, over all shards; values above `size` mean `size`
  /// Throws InputError if one of them is 0.
  BatchPlan(std::size_t size, std::size_t global_batch, Shard shard = {}, std::size_t accumulate = 1);

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t global_batch() const noexcept { return global_batch_; }
  /// Whether this shard has no part of any step; its loader then returns equal batches without real samples.
  [[nodiscard]] bool is_empty() const noexcept { return shard_.is_empty(); }
  /// Micro-batches of this shard per step.
  [[nodiscard]] std::size_t micro_batches() const noexcept { return deal_.all > 0 ? deal_.count : accumulate_; }
  [[nodiscard]] std::size_t steps_per_epoch() const noexcept { return (size_ + global_batch_ - 1) / global_batch_; }
  /// Rows of a batch that has room for any micro-batch of any shard; the same on all ranks.
  [[nodiscard]] std::size_t capacity() const noexcept;
  /// Rows of the smallest non-empty micro-batch of any shard in a full step; the same on all ranks.
  [[nodiscard]] std::size_t smallest() const noexcept;
  /// Whether this shard has samples in a full step.
  [[nodiscard]] bool has_samples() const noexcept;
  /// The same plan for batches of at least `rows` rows, the batch size that a model was planned for.
  [[nodiscard]] BatchPlan with_capacity(std::size_t rows) const noexcept {
    BatchPlan plan = *this;
    plan.least_capacity_ = rows;
    return plan;
  }
  /// The same plan with different numbers of micro-batches per shard: the global batch is divided into `all`
  /// micro-batches, as even as possible. `all` is the number of shards times `accumulate`. Throws LogicError for a deal
  /// outside of that range.
  [[nodiscard]] BatchPlan dealt(const Deal& deal) const;
  /// Samples of `step` over all shards; step < steps_per_epoch().
  [[nodiscard]] std::size_t samples(std::size_t step) const noexcept { return global(step).size(); }
  /// This shard's samples of a micro-batch of `step` (from 0 in its epoch), as positions in the epoch's order. May be
  /// empty; its begin is then the position of another sample of the step.
  [[nodiscard]] Range part(std::size_t step, std::size_t micro_batch = 0) const noexcept;
  /// The position in its global batch where that part begins.
  [[nodiscard]] std::size_t first_row(std::size_t step, std::size_t micro_batch = 0) const noexcept {
    return part(step, micro_batch).begin - global(step).begin;
  }

 private:
  [[nodiscard]] Range global(std::size_t step) const noexcept;

  std::size_t size_, global_batch_;
  Shard shard_;
  std::size_t accumulate_;
  Deal deal_;
  std::size_t least_capacity_ = 0;
};

}  // namespace ronda
