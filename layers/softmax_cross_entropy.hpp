#pragma once
#include <memory>

#include <ronda/layers/layer.hpp>
#include <ronda/layers/planner.hpp>
#include <ronda/layers/primitives.hpp>

namespace ronda {

/// −log softmax(x)[label], with labels int32 (N) and outputs (N, classes), computed in float32. With label smoothing ε
/// the target is (1−ε) on the label and ε/classes everywhere (Szegedy et al., CVPR 2016), as in PyTorch. The
/// exponentials are taken of x − max(x), so no finite input overflows; sums over samples are float64.
class SoftmaxCrossEntropy final : public Loss {
 public:
  /// Throws InputError where `label_smoothing` is not in [0, 1).
  explicit SoftmaxCrossEntropy(double label_smoothing = 0);

  [[nodiscard]] bool runs_on_any_device() const noexcept override { return true; }
  /// The share of samples whose largest output is the label's.
  [[nodiscard]] Metric metric() const override { return {"accuracy", true}; }
  void bind(const Bindings& bindings) override;
  /// Throws InputError for targets that are no labels, and for a label outside [0, classes); a GPU, which cannot throw,
  /// makes the loss NaN for the latter.
  const Tensor& forward_backward(const Tensor& outputs, const Tensor& target, const Pass& pass) override;
  void forward(const Tensor& outputs, const Tensor& target, const Pass& pass) override;

 protected:
  void plan(const TensorDesc& outputs, Planner& planner) override;

 private:
  void check(const Tensor& target) const;

  float smoothing_;
  TensorDesc outputs_;
  std::unique_ptr<LossOperation> operation_;
  BufferId gradient_id_{}, scratch_id_{};
  Tensor gradient_;
  std::byte* scratch_ = nullptr;
};

}  // namespace ronda
