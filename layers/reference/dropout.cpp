#include <ronda/layers/dropout_mask.hpp>
#include <ronda/layers/reference/operations.hpp>

namespace ronda::reference {
namespace {

/// Draws the mask in both directions.
class Dropping final : public Operation {
 public:
  Dropping(const TensorDesc& input, const DropoutSpec& spec, std::string_view name)
      : elements_(input), channels_(input.shape[input.shape.rank() - 1]), mask_(spec, name, input.shape) {
    plan_ = plan_of_function(input, false, "plain loops");
    plan_.backward_reads_output = false;
  }
  void bind(const OperationMemory& memory) override { memory_ = memory; }
  void forward(Inputs inputs, const Pass& pass) override {
    const auto x = inputs.front().as<float>(), y = memory_.output.as<float>();
    if (x.data() != y.data()) std::ranges::copy(x, y.begin());  // padding too
    if (pass.mode == Mode::training) multiply(y, pass);
  }
  void backward(Inputs, const Tensor& output_gradient, const Pass& pass) override {
    if (memory_.input_gradient().empty()) return;
    const auto dx = memory_.input_gradient().as<float>();
    std::ranges::copy(output_gradient.as<float>(), dx.begin());
    multiply(dx, pass);
  }

 private:
  void multiply(std::span<float> values, const Pass& pass) const {
    const RngKey key = mask_.key(pass);
    for (std::int64_t i = 0; i < elements_.count(); ++i) {
      const std::int64_t c = i % channels_, position = i / channels_ % mask_.positions();
      const std::int64_t row = i / channels_ / mask_.positions();
      values[elements_[i]] *= mask_.factor_of(key, pass, row, position, c);
    }
  }

  Elements elements_;
  std::int64_t channels_;
  DropoutMask mask_;
  OperationMemory memory_;
};

}  // namespace

std::unique_ptr<Operation> make_dropout(const TensorDesc& input, const DropoutSpec& spec, std::string_view name) {
  return std::make_unique<Dropping>(input, spec, name);
}

}  // namespace ronda::reference
