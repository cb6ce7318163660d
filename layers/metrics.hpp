#pragma once
#include <cstdint>

#include <ronda/layers/summed_metric.hpp>

namespace ronda {

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
