#pragma once
#include <ronda/layers/layer.hpp>

namespace ronda {

/// (x − mean) / √(variance + epsilon) · weight + bias, with mean and variance of each channel over the rows of a batch
/// and the pixels of its images (Ioffe and Szegedy, "Batch normalization", ICML 2015). Of (N, features) or (N, …,
/// channels): as PyTorch's BatchNorm1d and BatchNorm2d, whose names its parameters and states have: `weight`, initially
/// 1, `bias`, 0, `running_mean`, 0, `running_var`, 1, and `num_batches_tracked`, int64, which counts passes of
/// training. A ReLU behind it becomes part of it. Evaluation normalises by the running values. On the processor.
///
/// In training, mean and variance are those of this rank's rows of a micro-batch: ranks are not asked, so another
/// number of ranks or of micro-batches gives other statistics. Rows of weight 0, which only fill up a batch, do not
/// count and get no gradient; others count once, whatever they weigh. Where no row counts, the running values are used.
///
/// Running values move by `momentum` towards each batch's mean and unbiased variance, unless those are not finite, or
/// of a single value. Each rank has its own until the ranks evaluate or save the model: then all take the mean over the
/// ranks, to the same bits (Scope::averaged).
///
/// Running values can be held (GraphBuilder::hold_states; a training's `.freeze`): the layer then normalises by them in
/// training too, and they do not change. As Keras's `trainable = False`, and PyTorch's `eval()` of the layer.
class BatchNorm : public Layer {
 public:
  /// @param affine  whether there are weight and bias
  /// Throws InputError where epsilon is negative or momentum not in [0, 1].
  explicit BatchNorm(float epsilon = 1e-5F, float momentum = 0.1F, bool affine = true);
  [[nodiscard]] std::string_view kind() const noexcept override { return "batch_norm"; }
  Value build(Value x, GraphBuilder& builder) const override;

 protected:
  explicit BatchNorm(const BatchNormSpec& spec);

 private:
  BatchNormSpec spec_;
};

/// A BatchNorm whose mean and variance, and whose gradients, are those of all ranks' rows together: N ranks compute
/// what one would, to rounding. Each pass costs an allreduce in forward and one in backward, which the layer waits for.
/// With micro-batches the rows are those of one micro-batch, so that the result depends on how they are cut.
///
/// The running values have the same bits on all ranks at any time. Names and files are BatchNorm's: either reads what
/// the other has written. In a program without a strategy it is a BatchNorm.
class SyncBatchNorm final : public BatchNorm {
 public:
  explicit SyncBatchNorm(float epsilon = 1e-5F, float momentum = 0.1F, bool affine = true)
      : BatchNorm(BatchNormSpec{.momentum = momentum, .epsilon = epsilon, .affine = affine, .synchronized = true}) {}
};

/// PyTorch's names: the shape decides.
using BatchNorm1d = BatchNorm;
using BatchNorm2d = BatchNorm;

}  // namespace ronda
