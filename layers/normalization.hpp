#pragma once
#include <ronda/layers/layer.hpp>

namespace ronda {

/// (x − mean) / √(variance + epsilon) · weight + bias, with mean and variance of each channel over the rows of a batch
/// and the pixels of its images (Ioffe and Szegedy, "Batch normalization", ICML 2015). The input is (N, features) or
/// (N, …, channels). As PyTorch's BatchNorm1d and BatchNorm2d, with the same names of parameters and states: `weight`,
/// initially 1, `bias`, 0, `running_mean`, 0, `running_var`, 1, and `num_batches_tracked`, int64, the number of
/// training passes. A following ReLU is fused into it. Evaluation normalises by the running values. On the processor.
///
/// In training, mean and variance are over this rank's rows of a micro-batch, without communication, so they depend on
/// the number of ranks and micro-batches. Rows of weight 0, which only fill up a batch, do not count and get no
/// gradient; other rows count once, whatever their weight. If no row counts, the running values are used.
///
/// Running values move by `momentum` towards each batch's mean and unbiased variance, except if these are not finite or
/// from a single value. Each rank has its own running values until the ranks evaluate or save the model: these are then
/// averaged over the ranks, bitwise equal (Scope::averaged).
///
/// Running values can be held (GraphBuilder::hold_states; a training's `.freeze`): the layer then normalises by them in
/// training too, and does not change them. As Keras's `trainable = False`, and PyTorch's `eval()` of the layer.
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

/// A BatchNorm with mean, variance and gradients over the rows of all ranks: N ranks compute the same as one, up to
/// rounding. Costs a blocking allreduce in forward and one in backward. With micro-batches the rows are those of one
/// micro-batch on all ranks, so the result depends on the number of micro-batches.
///
/// The running values are always bitwise equal on all ranks. Names are the same as BatchNorm's, so each can read the
/// other's files. In a program without a strategy it is a BatchNorm.
class SyncBatchNorm final : public BatchNorm {
 public:
  explicit SyncBatchNorm(float epsilon = 1e-5F, float momentum = 0.1F, bool affine = true)
      : BatchNorm(BatchNormSpec{.momentum = momentum, .epsilon = epsilon, .affine = affine, .synchronized = true}) {}
};

/// PyTorch's names; both are the same class, which adapts to the shape.
using BatchNorm1d = BatchNorm;
using BatchNorm2d = BatchNorm;

/// (x − mean) / √(variance + epsilon) · weight + bias, with mean and variance over the last `axes` axes, separately for
/// each sample, step of a text or pixel (Ba, Kiros and Hinton, "Layer normalization", 2016); the variance is biased. As
/// PyTorch's LayerNorm, but with the number of axes in place of `normalized_shape`: `LayerNorm()` of (N, T, features)
/// has weight (features), initially 1, and bias (features), initially 0. For images (N, H, W, C) it normalises over the
/// channels of each pixel, or over all three axes; weight and bias are then (C, H, W) in files.
class LayerNorm final : public Layer {
 public:
  /// @param affine  whether there is a weight, and, if `bias`, a bias
  explicit LayerNorm(int axes = 1, float epsilon = 1e-5F, bool affine = true, bool bias = true)
      : spec_{.axes = axes, .epsilon = epsilon, .affine = affine, .bias = bias} {}
  [[nodiscard]] std::string_view kind() const noexcept override { return "layer_norm"; }
  Value build(Value x, GraphBuilder& builder) const override;

 private:
  LayerNormSpec spec_;
};

}  // namespace ronda
