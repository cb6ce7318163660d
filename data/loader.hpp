#pragma once
#include <cstdint>
#include <memory>

#include <ronda/data/batch_plan.hpp>
#include <ronda/data/dataset.hpp>

namespace ronda {

/// Contents of a loader's batches: values, or only sample numbers, for a device that holds the data.
enum class BatchContents : std::uint8_t { values, samples };

struct LoaderOptions {
  bool prefetch = false;  ///< assemble the next batch in advance on a separate thread: useful if a core is free
  BatchContents contents = BatchContents::values;
  bool varies = true;                ///< samples may vary between epochs (see SampleRequest); false: for evaluation
  std::size_t kept = 1;              ///< a batch stays valid until this number of further calls of `next`
  DeviceContext* staging = nullptr;  ///< values are in pinned memory of this device; null: pageable memory
};

/// Returns this shard's micro-batches in order, epoch after epoch, without end.
///
/// Rows after the real samples of a batch repeat the last real sample, with weight 0. In a batch without real samples
/// they repeat another sample of the same global batch: because 0 · NaN is NaN, a sample that is not finite must not
/// affect other steps. Real samples have weight 1, or the dataset's weight. Allocates nothing after construction. Not
/// thread-safe.
class BatchLoader {
 public:
  /// @param data  outlives the loader; read on another thread if `prefetch`
  BatchLoader(const Dataset& data, SampleOrder order, BatchPlan plan, LoaderOptions options);
  BatchLoader(const Dataset& data, SampleOrder order, BatchPlan plan, bool prefetch = false)
      : BatchLoader(data, order, plan, LoaderOptions{.prefetch = prefetch}) {}
  ~BatchLoader();
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;

  [[nodiscard]] const BatchPlan& plan() const noexcept;
  /// The next micro-batch; valid until the next call (see LoaderOptions::kept). The first one is of epoch 1, step 0;
  /// each step has plan().micro_batches() micro-batches. Throws the errors of the dataset; the next call tries the same
  /// batch again.
  const Batch& next();
  /// Continues with the first micro-batch of `step` (from 0) of `epoch` (from 1); the end of an epoch means the start
  /// of the next. Costs nothing if that batch is next anyway. Throws LogicError for a step that does not exist.
  void seek(std::uint64_t epoch, std::size_t step = 0);
  /// Assigns other micro-batches to this shard, from the next step on (BatchPlan::dealt). Throws LogicError within a
  /// step.
  void deal(const Deal& deal);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ronda
