#pragma once
#include <string>

namespace ronda {

/// What a loss measures beside itself: a mean over samples, such as the accuracy.
struct Metric {
  std::string name;    ///< one word, as in files: `accuracy`; empty: there is none, and its numbers are 0
  bool share = false;  ///< a part of 1, which people read in per cent

  bool operator==(const Metric&) const = default;

  /// A value for people: `98.61 %`, or `0.1234` where it is no share.
  [[nodiscard]] std::string text(double value) const;
};

}  // namespace ronda
