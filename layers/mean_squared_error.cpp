#include <ronda/core/error.hpp>
#include <ronda/layers/mean_squared_error.hpp>

#include <cmath>
#include <string>

namespace ronda {
namespace {

class SquaredErrors final : public LossOperation {
 public:
  SquaredErrors(const Shape& outputs, double unit) : outputs_(outputs), unit_(unit) {}

  void run(const Tensor& outputs, const Tensor& target, const Tensor& gradient, std::byte*, const Pass& pass) override {
    check(target);
    const auto x = outputs.as<const float>(), y = target.as<const float>();
    add_sums(x, y, pass);
    const auto columns = static_cast<std::size_t>(outputs_[1]);
    const auto weights = pass.weights->as<const float>();
    const auto dx = gradient.as<float>();
    const float factor = 2 * pass.loss_scale / static_cast<float>(columns);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float weight = weights[i / columns];
      dx[i] = weight == 0 ? 0 : factor * weight * (x[i] - y[i]);
    }
  }

 private:
  void check(const Tensor& target) const {
    const Shape alone{outputs_[0]};
    const bool fits = target.shape() == outputs_ || (outputs_[1] == 1 && target.shape() == alone);
    if (target.dtype() != DType::float32 || !fits)
      throw InputError("mean squared error takes targets float32 " + outputs_.text() + ", not " + target.desc().text());
  }

  void add_sums(std::span<const float> x, std::span<const float> y, const Pass& pass) const {
    const auto columns = static_cast<std::size_t>(outputs_[1]);
    const auto weights = pass.weights->as<const float>();
    for (std::size_t n = 0; n < weights.size(); ++n) {
      if (weights[n] == 0) continue;  // rows that fill up a batch may hold anything
      double squares = 0, distances = 0;
      for (std::size_t i = n * columns; i < (n + 1) * columns; ++i) {
        const double difference = double{x[i]} - y[i];
        squares += difference * difference;
        distances += std::abs(difference);
      }
      const double share = weights[n] / static_cast<double>(columns);
      pass.control->loss += share * unit_ * unit_ * squares;
      pass.control->metric += share * unit_ * distances;
      pass.control->weight += weights[n];
    }
  }

  Shape outputs_;
  double unit_;
};

}  // namespace

MeanSquaredError::MeanSquaredError(double unit) : unit_(unit) {
  if (!(unit > 0) || !std::isfinite(unit))
    throw InputError("the unit of a mean squared error is above 0, not " + std::to_string(unit));
}

std::unique_ptr<LossOperation> MeanSquaredError::make(const TensorDesc& outputs, Primitives&) const {
  if (outputs.shape.rank() != 2 || outputs.dtype != DType::float32)
    throw InputError("mean squared error takes float32 (N, outputs), not " + outputs.text());
  return std::make_unique<SquaredErrors>(outputs.shape, unit_);
}

}  // namespace ronda
