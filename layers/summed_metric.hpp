#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <ronda/core/metric.hpp>
#include <ronda/core/tensor.hpp>

namespace ronda {

/// A metric of a test, beside the loss: float64 sums over samples, and what they come to. Each rank adds its own
/// batches, the sums are added over all ranks once, and so the values are those of one rank with all samples. It has no
/// memory of its own: one object may serve several tests.
class SummedMetric {
 public:
  virtual ~SummedMetric() = default;

  /// How many numbers it sums for outputs of this shape, (N, …). Throws InputError for outputs that it does not take.
  [[nodiscard]] virtual std::size_t sums(const Shape& outputs) const = 0;
  /// Adds a batch to `sums`, on the host. Throws InputError for targets that it does not take.
  /// @param outputs  float32, plain, (N, …)
  /// @param targets  of the batch, (N, …)
  /// @param weights  of the samples; a row of weight 0 fills up the batch and does not count, whatever it holds
  virtual void add(const Tensor& outputs, const Tensor& targets, std::span<const float> weights,
                   std::span<double> sums) const = 0;
  /// The values, with names. As many for sums of 0, where no sample counted; they are NaN then, as a rule.
  [[nodiscard]] virtual std::vector<MetricValue> values(std::span<const double> sums) const = 0;
};

/// Metrics that others own.
using Metrics = std::vector<const SummedMetric*>;

/// The names of all values, for outputs of this shape. Throws InputError for outputs that a metric does not take, and
/// for names that are no words of letters, digits and `_ - . @`, or come twice.
/// @param of_loss  what the loss measures itself
[[nodiscard]] std::vector<std::string> checked_names(const Metrics& metrics, const Shape& outputs,
                                                     const Metric& of_loss);

}  // namespace ronda
