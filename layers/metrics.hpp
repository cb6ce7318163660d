#pragma once
#include <cstdint>

#include <ronda/layers/summed_metric.hpp>

namespace ronda {

// ---- of classes: outputs (N, …, classes), labels int32 (N, …). Rows count with their samples' weights; those whose
// label is `ignore_index` do not count. A row with a NaN is right for nothing. Where targets are probabilities, float32
// of the outputs' shape, a row's label is its likeliest class. ----------------------------------------------------

/// The share of rows whose label is among the `k` largest outputs, `top5`. Of equal outputs the first are larger.
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

/// `confusion_matrix`: how many rows of each class (the matrix's row) were taken for each class (its column). A row
/// with a NaN was taken for none.
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

/// exp of the mean cross entropy, `perplexity`.
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

/// The mean cross entropy in bits, `bits_per_byte`: of a model of bytes, to how many bits each could be compressed.
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

// ---- of numbers: outputs (N, …), targets float32 of the same shape, or (N) for outputs (N, 1) ---------------------

/// The mean of |x − y|, `mae`.
class MeanAbsoluteError final : public SummedMetric {
 public:
  /// @param unit  what 1 stands for, where outputs and targets are scaled
  explicit MeanAbsoluteError(double unit = 1) : unit_(unit) {}
  [[nodiscard]] std::size_t sums(const Shape& outputs) const override;
  void add(const Tensor& outputs, const Tensor& targets, std::span<const float> weights,
           std::span<double> sums) const override;
  [[nodiscard]] std::vector<MetricValue> values(std::span<const double> sums) const override;

 private:
  double unit_;
};

/// The root of the mean of (x − y)², `rmse`.
class RootMeanSquaredError final : public SummedMetric {
 public:
  /// @param unit  what 1 stands for, where outputs and targets are scaled
  explicit RootMeanSquaredError(double unit = 1) : unit_(unit) {}
  [[nodiscard]] std::size_t sums(const Shape& outputs) const override;
  void add(const Tensor& outputs, const Tensor& targets, std::span<const float> weights,
           std::span<double> sums) const override;
  [[nodiscard]] std::vector<MetricValue> values(std::span<const double> sums) const override;

 private:
  double unit_;
};

/// The coefficient of determination, `r2`: 1 − Σ(x − y)² / Σ(y − mean of y)², as a mean over the outputs of a sample.
/// NaN where targets do not differ. Sums of the targets and their squares are exact for up to 2^29 numbers (5e8) per
/// output, so it has its digits whatever the targets' mean and unit, and does not depend on how samples are divided
/// among batches and ranks. That takes 52 sums per output.
class R2Score final : public SummedMetric {
 public:
  [[nodiscard]] std::size_t sums(const Shape& outputs) const override;
  void add(const Tensor& outputs, const Tensor& targets, std::span<const float> weights,
           std::span<double> sums) const override;
  [[nodiscard]] std::vector<MetricValue> values(std::span<const double> sums) const override;
};

}  // namespace ronda
