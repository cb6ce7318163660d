#pragma once
#include <cstddef>

#include <ronda/core/parallel.hpp>

namespace ronda {

/// Which part of the data is ours: part `index` of `count`. None where both are the same number: that of a rank which
/// computes nothing, a server.
struct Shard {
  std::size_t index = 0, count = 1;
  [[nodiscard]] bool is_empty() const noexcept { return index == count; }
};

/// Which of a step's micro-batches a shard takes: `count` of `all`, from number `first` on. None: all shards take as
/// many.
struct Deal {
  std::size_t first = 0, count = 0, all = 0;
  bool operator==(const Deal&) const = default;
};

/// How an epoch is cut into steps, a step into the ranks' parts, and a part into micro-batches.
///
/// The *global batch* k is the samples k·G … k·G+G-1 of the epoch's order, for every number of ranks; the last one of
/// an epoch is short. Shard r takes its r-th contiguous part, the parts as even as possible, and cuts that into
/// `accumulate` contiguous *micro-batches*, of which the last ones may be short or empty too. So every sample is used
/// exactly once in an epoch. Six ranks' parts of G = 20, size = 28:
///
///     step 0   |0 1 2|3 4 5|6 7 8 9|10 11 12|13 14 15|16 17 18 19|
///     step 1   |20|21|22 23|24|25|26 27|
class BatchPlan {
 public:
  /// @param size          samples of an epoch
  /// @param global_batch  G, over all shards; more than `size` is as good as `size`
  /// Throws InputError where one of them is 0.
  BatchPlan(std::size_t size, std::size_t global_batch, Shard shard = {}, std::size_t accumulate = 1);

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t global_batch() const noexcept { return global_batch_; }
  /// Whether this shard has no part of any step; its loader's batches are then all the same, without a real sample.
  [[nodiscard]] bool is_empty() const noexcept { return shard_.is_empty(); }
  /// Of a step, this shard's.
  [[nodiscard]] std::size_t micro_batches() const noexcept { return deal_.all > 0 ? deal_.count : accumulate_; }
  [[nodiscard]] std::size_t steps_per_epoch() const noexcept { return (size_ + global_batch_ - 1) / global_batch_; }
  /// Rows that hold any micro-batch of any shard; the same on all ranks.
  [[nodiscard]] std::size_t capacity() const noexcept;
  /// Rows of the smallest micro-batch of any shard in a full step, without empty ones; the same on all ranks.
  [[nodiscard]] std::size_t smallest() const noexcept;
  /// Whether this shard has samples of a full step.
  [[nodiscard]] bool has_samples() const noexcept;
  /// The same plan for batches of at least `rows` rows: what a model was planned for.
  [[nodiscard]] BatchPlan with_capacity(std::size_t rows) const noexcept {
    BatchPlan plan = *this;
    plan.least_capacity_ = rows;
    return plan;
  }
  /// The same plan where shards take different numbers of micro-batches: the global batch is cut into `all` of them, as
  /// even as possible. `all` is the number of shards times `accumulate`. Throws LogicError for a deal that is not part
  /// of it.
  [[nodiscard]] BatchPlan dealt(const Deal& deal) const;
  /// Samples of `step` over all shards; step < steps_per_epoch().
  [[nodiscard]] std::size_t samples(std::size_t step) const noexcept { return global(step).size(); }
  /// This shard's samples of `step` (from 0 in its epoch) and micro-batch, as places in the epoch's order. May be
  /// empty; its begin is then the place of another sample of the step.
  [[nodiscard]] Range part(std::size_t step, std::size_t micro_batch = 0) const noexcept;
  /// The place in its global batch where that part begins.
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
