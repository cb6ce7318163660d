#include <ronda/layers/pass.hpp>
#include <ronda/runtime/trainer/spoiled_loss.hpp>

#include <algorithm>
#include <cmath>

namespace ronda {

const Tensor& SpoiledLoss::forward_backward(const Tensor& outputs, const Tensor& target, const Pass& pass) {
  const Tensor& gradient = loss_.forward_backward(outputs, target, pass);
  if (faults_.happens(FaultKind::flip_gradient, pass.step)) {
    const auto numbers = gradient.as<float>();
    const auto largest =
        std::ranges::max_element(numbers, {}, [](float number) { return std::abs(number); });  // a zero would stay one
    if (largest != numbers.end()) flip_bit(*largest);
  }
  return gradient;
}

}  // namespace ronda
