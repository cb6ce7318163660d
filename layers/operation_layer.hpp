#pragma once
#include <memory>
#include <string>

#include <ronda/layers/layer.hpp>
#include <ronda/layers/planner.hpp>
#include <ronda/layers/primitives.hpp>

namespace ronda {

/// A layer that is one operation of the device's library: asks for its memory, hands it over, passes calls on.
class OperationLayer : public Layer {
 public:
  [[nodiscard]] bool reads_any_layout() const noexcept final { return true; }
  [[nodiscard]] bool runs_on_any_device() const noexcept final { return true; }
  [[nodiscard]] GradientFlow gradient_flow() const noexcept final { return GradientFlow::own; }
  void bind(const Bindings& bindings) final;
  const Tensor& forward(const Tensor& input, const Pass& pass) final;
  const Tensor& backward(const Tensor& output_gradient, const Pass& pass) final;

 protected:
  TensorDesc plan(const TensorDesc& input, Planner& planner) final;
  virtual std::unique_ptr<Operation> make(const TensorDesc& input, Primitives& primitives,
                                          const OperationContext& context) = 0;
  /// What the weight's initial values rest on; both 0 for a layer without parameters.
  struct Fans {
    std::int64_t in = 0, out = 0;
  };
  [[nodiscard]] virtual Fans fans(const TensorDesc& /*input*/) const { return {}; }

 private:
  void request_parameters(const TensorDesc& input, const std::string& name, Planner& planner);

  std::unique_ptr<Operation> operation_;
  TensorDesc input_desc_;
  std::vector<ParameterId> parameters_;
  BufferId output_id_{}, input_gradient_id_{}, pass_id_{}, scratch_id_{};
  bool input_gradient_needed_ = false;
  Tensor input_, output_, input_gradient_;
};

}  // namespace ronda
