#pragma once
#include <string>
#include <vector>

#include <ronda/core/tensor.hpp>

namespace ronda {

/// Name and format of a number that a training reports, such as the accuracy.
struct Metric {
  std::string name;    ///< one word, as in files: `accuracy`; empty: no metric, and its values are 0
  bool share = false;  ///< a fraction of 1, printed in per cent

  bool operator==(const Metric&) const = default;

  /// A value as text: `98.61 %`, or `0.1234` if it is not a share.
  [[nodiscard]] std::string text(double value) const;
};

/// The value of a metric: a number or a matrix.
struct MetricValue {
  Metric metric;
  std::vector<double> values;  ///< one, or the elements of `shape`, row by row
  Shape shape = {};            ///< rank 0: a number

  [[nodiscard]] bool is_number() const noexcept { return shape.rank() == 0; }
  [[nodiscard]] double number() const noexcept { return values.front(); }
  bool operator==(const MetricValue&) const = default;
};

/// The number with this name. Throws InputError that lists the names if there is no such metric.
[[nodiscard]] double number_of(const std::vector<MetricValue>& values, const std::string& name);

}  // namespace ronda
