#include <ronda/runtime/trainer/spoiled_loss.hpp>

#include <algorithm>
#include <cmath>

namespace ronda {
namespace {

class Spoiled final : public LossOperation {
 public:
  Spoiled(std::unique_ptr<LossOperation> operation, Faults faults)
      : operation_(std::move(operation)), faults_(std::move(faults)) {}
  [[nodiscard]] std::size_t scratch_bytes() const noexcept override { return operation_->scratch_bytes(); }
  void run(const Tensor& outputs, const Tensor& target, const Tensor& gradient, std::byte* scratch,
           const Pass& pass) override {
    operation_->run(outputs, target, gradient, scratch, pass);
    if (pass.mode != Mode::training || !faults_.happens(FaultKind::flip_gradient, pass.step)) return;
    const auto numbers = gradient.as<float>();
    const auto largest =
        std::ranges::max_element(numbers, {}, [](float number) { return std::abs(number); });  // a zero would stay one
    if (largest != numbers.end()) flip_bit(*largest);
  }

 private:
  std::unique_ptr<LossOperation> operation_;
  Faults faults_;
};

}  // namespace

std::unique_ptr<LossOperation> SpoiledLoss::make(const TensorDesc& outputs, Primitives& primitives) const {
  return std::make_unique<Spoiled>(loss_.make(outputs, primitives), faults_);
}

}  // namespace ronda
