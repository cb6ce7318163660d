#pragma once
#include <cstdint>
#include <memory>

#include <ronda/data/batch_plan.hpp>
#include <ronda/data/dataset.hpp>
#include <ronda/data/sample_order.hpp>

namespace ronda {

/// What a loader's batches hold: values, or the samples' names alone, for a device that holds the data.
enum class BatchContents : std::uint8_t { values, samples };

struct LoaderOptions {
  bool prefetch = false;  ///< assemble the next batch beforehand, on a thread of its own: worth it where a core is free
  BatchContents contents = BatchContents::values;
  bool varies = true;    ///< samples may differ from epoch to epoch (see SampleRequest); false: for evaluation
  std::size_t kept = 1;  ///< a batch stays as it is until `next` has been called so many times more
  DeviceContext* staging = nullptr;  ///< values lie in memory that this device copies from by itself; null: anywhere
};

/// Gives this shard's micro-batches, one after the other and epoch after epoch, without end.
///
/// Rows of a batch beyond its real samples repeat the last real one, or where there is none another one of the step's
/// global batch, with weight 0: a sample whose numbers are not finite spoils no step but its own, as 0 · NaN is NaN.
/// The others weigh 1, or what the dataset says. Allocates nothing after construction. One thread uses it.
class BatchLoader {
 public:
  /// @param data  outlives the loader; read from another thread where `prefetch`
  BatchLoader(const Dataset& data, SampleOrder order, BatchPlan plan, LoaderOptions options);
  BatchLoader(const Dataset& data, SampleOrder order, BatchPlan plan, bool prefetch = false)
      : BatchLoader(data, order, plan, LoaderOptions{.prefetch = prefetch}) {}
  ~BatchLoader();
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;

  [[nodiscard]] const BatchPlan& plan() const noexcept;
  /// The next micro-batch; valid until the next call (see LoaderOptions::kept). It starts with epoch 1, step 0, and a
  /// step has plan().micro_batches() of them. Throws what the dataset threw; the call after that tries the same batch
  /// again.
  const Batch& next();
  /// Goes on with the first micro-batch of `step` (from 0) of `epoch` (from 1); an epoch's end is the next one's
  /// beginning. Free where it would be next anyway. Throws LogicError for a place that there is not.
  void seek(std::uint64_t epoch, std::size_t step = 0);
  /// From the next step on this shard takes other micro-batches (BatchPlan::dealt). Throws LogicError in the middle of
  /// a step.
  void deal(const Deal& deal);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ronda
