#pragma once
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>

#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>
#include <ronda/layers/elementwise_loss.hpp>

namespace ronda {

/// Functions of the difference d = x − y of an output and its target, with their derivatives, one struct each.
namespace difference {

[[nodiscard]] inline float sign(float d) { return d > 0 ? 1.0F : d < 0 ? -1.0F : d; }  // NaN for NaN

struct Squared {
  static constexpr std::string_view name = "mean squared error";
  static constexpr int degree = 2;  ///< power of the targets' unit in the loss: see MeanSquaredError
  [[nodiscard]] static double value(double d) { return d * d; }
  [[nodiscard]] static float gradient(float d) { return 2 * d; }
};

struct Absolute {
  static constexpr std::string_view name = "L1 loss";
  static constexpr int degree = 1;
  [[nodiscard]] static double value(double d) { return std::abs(d); }
  [[nodiscard]] static float gradient(float d) { return sign(d); }
};

struct Huber {
  static constexpr std::string_view name = "Huber loss";
  static constexpr int degree = 2;
  double delta;
  [[nodiscard]] double value(double d) const {
    const double distance = std::abs(d);
    return distance <= delta ? 0.5 * d * d : delta * (distance - 0.5 * delta);
  }
  [[nodiscard]] float gradient(float d) const {
    const auto bound = static_cast<float>(delta);
    return std::abs(d) <= bound ? d : bound * sign(d);
  }
};

struct SmoothAbsolute {
  static constexpr std::string_view name = "smooth L1 loss";
  static constexpr int degree = 1;
  double beta;
  [[nodiscard]] double value(double d) const {
    const double distance = std::abs(d);
    return distance < beta ? 0.5 * d * d / beta : distance - 0.5 * beta;
  }
  [[nodiscard]] float gradient(float d) const {
    const auto bound = static_cast<float>(beta);
    return std::abs(d) < bound ? d / bound : sign(d);
  }
};

/// Adapts one of these structs to a function of output and target.
template <class Row>
class Of {
 public:
  static constexpr std::string_view name = Row::name;
  [[nodiscard]] static Metric metric() { return {"mae", false}; }

  Of(Row row, double unit) : row_(row), unit_(unit), scale_(std::pow(unit, Row::degree)) {
    if (!(unit > 0) || !std::isfinite(unit))
      throw InputError("the unit of a " + std::string(name) + " is above 0, not " + shortest(unit));
  }
  [[nodiscard]] double value(double x, double y, std::size_t) const { return scale_ * row_.value(x - y); }
  [[nodiscard]] float gradient(float x, float y, std::size_t) const { return row_.gradient(x - y); }
  [[nodiscard]] double measure(double x, double y) const { return unit_ * std::abs(x - y); }

 private:
  Row row_;
  double unit_, scale_;
};

[[nodiscard]] inline double checked(double bound, bool sound, const char* what) {
  if (sound && std::isfinite(bound)) return bound;
  throw InputError(std::string(what) + ", not " + shortest(bound));
}

}  // namespace difference

/// The mean of (x − y)² over the outputs of a sample: PyTorch's MSELoss. For all losses here, outputs are float32 (N,
/// …), targets are float32 of the same shape, or (N) for outputs (N, 1), the metric is `mae`, the mean of |x − y|, and
/// the computation is on the processor.
class MeanSquaredError final : public ElementwiseLoss<difference::Of<difference::Squared>> {
 public:
  /// @param unit  the original size of 1 in scaled outputs and targets. Losses and metrics are in the original unit
  ///              (this loss times unit², a loss of degree 1 times unit), gradients are those of the scaled numbers.
  /// Throws InputError unless `unit` is above 0.
  explicit MeanSquaredError(double unit = 1) : ElementwiseLoss({{}, unit}) {}
};

/// The mean of |x − y|: PyTorch's L1Loss. The gradient is 0 where x = y.
class L1Loss final : public ElementwiseLoss<difference::Of<difference::Absolute>> {
 public:
  /// @param unit  see MeanSquaredError
  explicit L1Loss(double unit = 1) : ElementwiseLoss({{}, unit}) {}
};

/// The mean of (x − y)² / 2 where |x − y| ≤ δ, and of δ (|x − y| − δ/2) elsewhere: PyTorch's HuberLoss (Huber, "Robust
/// estimation of a location parameter", 1964).
class HuberLoss final : public ElementwiseLoss<difference::Of<difference::Huber>> {
 public:
  /// @param delta  above 0, otherwise InputError; for scaled numbers
  /// @param unit   see MeanSquaredError
  explicit HuberLoss(double delta = 1, double unit = 1)
      : ElementwiseLoss({{difference::checked(delta, delta > 0, "the delta of a Huber loss is above 0")}, unit}) {}
};

/// The mean of (x − y)² / 2β where |x − y| < β, and of |x − y| − β/2 elsewhere: PyTorch's SmoothL1Loss, which is its
/// HuberLoss divided by β; with β = 0 its L1Loss.
class SmoothL1Loss final : public ElementwiseLoss<difference::Of<difference::SmoothAbsolute>> {
 public:
  /// @param beta  at least 0, otherwise InputError; for scaled numbers
  /// @param unit  see MeanSquaredError
  explicit SmoothL1Loss(double beta = 1, double unit = 1)
      : ElementwiseLoss({{difference::checked(beta, beta >= 0, "the beta of a smooth L1 loss is at least 0")}, unit}) {}
};

}  // namespace ronda
