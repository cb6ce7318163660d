#pragma once
#include <cstddef>
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

}  // namespace ronda
