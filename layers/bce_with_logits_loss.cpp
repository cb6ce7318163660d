#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>
#include <ronda/layers/bce_with_logits_loss.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace ronda {

BinaryCrossEntropy::BinaryCrossEntropy(std::vector<float> positive) : positive_(std::move(positive)) {
  for (const float weight : positive_)
    if (!(weight >= 0) || !std::isfinite(weight))
      throw InputError("a pos_weight of BCE with logits is at least 0, not " + shortest(weight));
}

void BinaryCrossEntropy::check(const Shape& outputs) const {
  const std::int64_t last = outputs[outputs.rank() - 1];
  if (positive_.size() > 1 && std::cmp_not_equal(positive_.size(), last))
    throw InputError("BCE with logits was given " + std::to_string(positive_.size()) + " pos_weights, and outputs " +
                     outputs.text() + " take one for all, or " + std::to_string(last));
}

double BinaryCrossEntropy::value(double x, double y, std::size_t column) const {
  const double tail = std::log1p(std::exp(-std::abs(x)));
  const double yes = tail + std::max(-x, 0.0), no = tail + std::max(x, 0.0);  // −log σ(x), −log(1 − σ(x))
  return positive(column) * y * yes + (1 - y) * no;
}

float BinaryCrossEntropy::gradient(float x, float y, std::size_t column) const {
  const float tail = std::exp(-std::abs(x)), larger = 1 / (1 + tail), smaller = tail * larger;
  const float yes = x >= 0 ? larger : smaller, no = x >= 0 ? smaller : larger;  // σ(x), 1 − σ(x)
  return (1 - y) * yes - positive(column) * y * no;
}

BCEWithLogitsLoss::BCEWithLogitsLoss(std::vector<float> pos_weight)
    : ElementwiseLoss(BinaryCrossEntropy(std::move(pos_weight))) {}

}  // namespace ronda
