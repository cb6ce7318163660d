#include <ronda/core/error.hpp>
#include <ronda/layers/mean_squared_error.hpp>

#include <cmath>
#include <string>

namespace ronda {

MeanSquaredError::MeanSquaredError(double unit) : unit_(unit) {
  if (!(unit > 0) || !std::isfinite(unit))
    throw InputError("the unit of a mean squared error is above 0, not " + std::to_string(unit));
}

void MeanSquaredError::plan(const TensorDesc& outputs, Planner& planner) {
  if (outputs.shape.rank() != 2 || !same_bytes(outputs, {outputs.shape, DType::float32, {}}))
    throw InputError("mean squared error takes plain float32 (N, outputs), not " + outputs.text());
  outputs_ = outputs;
  gradient_id_ = planner.buffer("loss gradient", outputs.bytes(), Lifetime::gradient);
}

void MeanSquaredError::bind(const Bindings& bindings) { gradient_ = bindings.tensor(gradient_id_, outputs_); }

void MeanSquaredError::check(const Tensor& target) const {
  const Shape alone{outputs_.shape[0]};
  const bool fits = target.shape() == outputs_.shape || (outputs_.shape[1] == 1 && target.shape() == alone);
  if (target.dtype() != DType::float32 || !fits)
    throw InputError("mean squared error takes targets float32 " + outputs_.shape.text() + ", not " +
                     target.desc().text());
}

const Tensor& MeanSquaredError::forward_backward(const Tensor& outputs, const Tensor& target, const Pass& pass) {
  forward(outputs, target, pass);
  const auto columns = static_cast<std::size_t>(outputs_.shape[1]);
  const auto x = outputs.as<const float>(), y = target.as<const float>();
  const auto weights = pass.weights->as<const float>();
  const auto gradient = gradient_.as<float>();
  const float factor = 2 * pass.loss_scale / static_cast<float>(columns);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float weight = weights[i / columns];
    gradient[i] = weight == 0 ? 0 : factor * weight * (x[i] - y[i]);
  }
  return gradient_;
}

void MeanSquaredError::forward(const Tensor& outputs, const Tensor& target, const Pass& pass) {
  check(target);
  const auto columns = static_cast<std::size_t>(outputs_.shape[1]);
  const auto x = outputs.as<const float>(), y = target.as<const float>();
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

}  // namespace ronda
