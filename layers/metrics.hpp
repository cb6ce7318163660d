#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <ronda/core/metric.hpp>
#include <ronda/core/tensor.hpp>

namespace ronda {

/// A metric of a test, in addition to the loss: float64 sums over samples, and values computed from them. Each rank
/// adds its batches, and the sums are added over all ranks once, so the values are those of one rank with all samples.
/// Holds no state, so one object may serve several tests.
class SummedMetric {
 public:
  virtual ~SummedMetric() = default;

  /// The number of sums for outputs of this shape, (N, …). Throws InputError for outputs that the metric does not
  /// accept.
  [[nodiscard]] virtual std::size_t sums(const Shape& outputs) const = 0;
  /// Adds a batch to `sums`, on the host. Throws InputError for targets that the metric does not accept.
  /// @param outputs  float32, plain, (N, …)
  /// @param targets  targets of the batch, (N, …)
  /// @param weights  weights of the samples; a row of weight 0 only fills up the batch, and does not count, even if it
  ///                 is NaN
  virtual void add(const Tensor& outputs, const Tensor& targets, std::span<const float> weights,
                   std::span<double> sums) const = 0;
  /// The values, with names. Their number is the same if no sample counted and all sums are 0; the values are then
  /// usually NaN.
  [[nodiscard]] virtual std::vector<MetricValue> values(std::span<const double> sums) const = 0;
};

/// Metrics, not owned.
using Metrics = std::vector<const SummedMetric*>;

/// The names of all values, for outputs of this shape. Throws InputError for outputs that a metric does not accept, for
/// names with characters other than letters, digits and `_ - . @`, and for duplicate names.
/// @param of_loss  the metric of the loss
[[nodiscard]] std::vector<std::string> checked_names(const Metrics& metrics, const Shape& outputs,
                                                     const Metric& of_loss);

// ---- classification: outputs (N, …, classes), labels int32 (N, …). Rows have the weights of their samples; rows with
// label `ignore_index` do not count. A row with a NaN is never correct. If targets are probabilities, float32 of the
// outputs' shape, a row's label is the class with the highest probability. ------------------------------------------

/// The share of rows whose label is among the `k` largest outputs, `top5`. Ties are resolved in favour of the first
/// output.
class TopKAccuracy final : public SummedMetric {
 public:
  /// Throws InputError for a `k` below 1.
  explicit TopKAccuracy(std::int64_t k, std::int32_t ignore_index = -100);
  [[nodiscard]] std::size_t sums(const Shape& outputs) const override;
  void add(const Tensor& outputs, const Tensor& targets, std::span<const float> weights,
           std::span<double> sums) const override;
  [[nodiscard]] std::vector<MetricValue> values(std::span<const double> sums) const override;

 private:
  std::int64_t k_;
  std::int32_t ignore_index_;
};

/// `confusion_matrix`: the number of rows of each class (row of the matrix) by predicted class (column). Rows with a
/// NaN are not counted.
class ConfusionMatrix final : public SummedMetric {
 public:
  explicit ConfusionMatrix(std::int32_t ignore_index = -100) : ignore_index_(ignore_index) {}
  [[nodiscard]] std::size_t sums(const Shape& outputs) const override;
  void add(const Tensor& outputs, const Tensor& targets, std::span<const float> weights,
           std::span<double> sums) const override;
  [[nodiscard]] std::vector<MetricValue> values(std::span<const double> sums) const override;

 private:
  std::int32_t ignore_index_;
};

/// `perplexity`: exp of the mean cross entropy.
class Perplexity final : public SummedMetric {
 public:
  explicit Perplexity(std::int32_t ignore_index = -100) : ignore_index_(ignore_index) {}
  [[nodiscard]] std::size_t sums(const Shape& outputs) const override;
  void add(const Tensor& outputs, const Tensor& targets, std::span<const float> weights,
           std::span<double> sums) const override;
  [[nodiscard]] std::vector<MetricValue> values(std::span<const double> sums) const override;

 private:
  std::int32_t ignore_index_;
};

/// `bits_per_byte`: the mean cross entropy in bits. For a model of bytes, the compressed size per byte.
class BitsPerByte final : public SummedMetric {
 public:
  explicit BitsPerByte(std::int32_t ignore_index = -100) : ignore_index_(ignore_index) {}
  [[nodiscard]] std::size_t sums(const Shape& outputs) const override;
  void add(const Tensor& outputs, const Tensor& targets, std::span<const float> weights,
           std::span<double> sums) const override;
  [[nodiscard]] std::vector<MetricValue> values(std::span<const double> sums) const override;

 private:
  std::int32_t ignore_index_;
};

// ---- regression: outputs (N, …), targets float32 of the same shape, or (N) for outputs (N, 1) ---------------------

/// `mae`: the mean of |x − y|.
class MeanAbsoluteError final : public SummedMetric {
 public:
  /// @param unit  the original size of 1 in scaled outputs and targets; the metric is multiplied by it
  explicit MeanAbsoluteError(double unit = 1) : unit_(unit) {}
  [[nodiscard]] std::size_t sums(const Shape& outputs) const override;
  void add(const Tensor& outputs, const Tensor& targets, std::span<const float> weights,
           std::span<double> sums) const override;
  [[nodiscard]] std::vector<MetricValue> values(std::span<const double> sums) const override;

 private:
  double unit_;
};

/// `rmse`: the root of the mean of (x − y)².
class RootMeanSquaredError final : public SummedMetric {
 public:
  /// @param unit  the original size of 1 in scaled outputs and targets; the metric is multiplied by it
  explicit RootMeanSquaredError(double unit = 1) : unit_(unit) {}
  [[nodiscard]] std::size_t sums(const Shape& outputs) const override;
  void add(const Tensor& outputs, const Tensor& targets, std::span<const float> weights,
           std::span<double> sums) const override;
  [[nodiscard]] std::vector<MetricValue> values(std::span<const double> sums) const override;

 private:
  double unit_;
};

/// `r2`, the coefficient of determination: 1 − Σ(x − y)² / Σ(y − mean of y)², averaged over the outputs of a sample.
/// NaN if all targets are equal. Sums of the targets and of their squares are exact for up to 2^29 numbers (5e8) per
/// output, so no mean or unit of the targets costs precision, and the division of samples among batches and ranks does
/// not matter. This takes 52 sums per output.
class R2Score final : public SummedMetric {
 public:
  [[nodiscard]] std::size_t sums(const Shape& outputs) const override;
  void add(const Tensor& outputs, const Tensor& targets, std::span<const float> weights,
           std::span<double> sums) const override;
  [[nodiscard]] std::vector<MetricValue> values(std::span<const double> sums) const override;
};

}  // namespace ronda
