#pragma once
#include <functional>
#include <memory>
#include <utility>

#include <ronda/layers/losses.hpp>

namespace ronda::test {

/// Softmax cross entropy with something done around each of its runs.
class WrappedLoss final : public Loss {
 public:
  struct Run {
    LossOperation& operation;
    const Tensor &outputs, &target, &gradient;
    std::byte* scratch;
    const Pass& pass;
    /// The loss itself, of these labels.
    void of(const Tensor& labels) const { operation.run(outputs, labels, gradient, scratch, pass); }
    void operator()() const { of(target); }
  };
  using Around = std::function<void(const Run&)>;

  explicit WrappedLoss(Around around) : around_(std::move(around)) {}
  [[nodiscard]] Metric metric() const override { return loss_.metric(); }
  [[nodiscard]] std::unique_ptr<LossOperation> make(const TensorDesc& outputs, Primitives& primitives) const override {
    return std::make_unique<Wrapped>(loss_.make(outputs, primitives), around_);
  }

 private:
  class Wrapped final : public LossOperation {
   public:
    Wrapped(std::unique_ptr<LossOperation> operation, Around around)
        : operation_(std::move(operation)), around_(std::move(around)) {}
    [[nodiscard]] std::size_t scratch_bytes() const noexcept override { return operation_->scratch_bytes(); }
    void run(const Tensor& outputs, const Tensor& target, const Tensor& gradient, std::byte* scratch,
             const Pass& pass) override {
      around_({*operation_, outputs, target, gradient, scratch, pass});
    }

   private:
    std::unique_ptr<LossOperation> operation_;
    Around around_;
  };

  Around around_;
  SoftmaxCrossEntropy loss_;
};

}  // namespace ronda::test
