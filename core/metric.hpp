#pragma once
#include <string>
#include <vector>

#include <ronda/core/shape.hpp>

namespace ronda {

/// What a number of a training is called and how people read it, such as the accuracy.
struct Metric {
  std::string name;    ///< one word, as in files: `accuracy`; empty: there is none, and its numbers are 0
  bool share = false;  ///< a part of 1, which people read in per cent

  bool operator==(const Metric&) const = default;

  /// A value for people: `98.61 %`, or `0.1234` where it is no share.
  [[nodiscard]] std::string text(double value) const;
};

/// What a metric came to: a number, or a matrix of them.
struct MetricValue {
  Metric metric;
  std::vector<double> values;  ///< one, or as many as `shape` has, row by row
  Shape shape = {};            ///< no axes: a number

  [[nodiscard]] bool is_number() const noexcept { return shape.rank() == 0; }
  [[nodiscard]] double number() const noexcept { return values.front(); }
  bool operator==(const MetricValue&) const = default;
};

/// The number of this name. Throws InputError, listing the names there are.
[[nodiscard]] double number_of(const std::vector<MetricValue>& values, const std::string& name);

}  // namespace ronda
