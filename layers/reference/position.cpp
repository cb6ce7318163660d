#include <ronda/layers/reference/operations.hpp>

#include <algorithm>
#include <array>

namespace ronda::reference {
namespace {

class Position final : public Operation {
 public:
  Position(const TensorDesc& input, const PositionSpec& spec)
      : samples_(static_cast<std::size_t>(input.shape[0])),
        each_(static_cast<std::size_t>(input.shape.without_batch().count())) {
    plan_.output = {output_shape(spec, {&input.shape, 1}), DType::float32, {}};
    plan_.parameters = {{Shape{spec.rows, input.shape[2]}, DType::float32, {}}};
    plan_.picks = "plain loops";
    plan_.backward_reads_inputs = plan_.backward_reads_output = false;
    plan_.in_place = true;
  }
  void bind(const OperationMemory& memory) override { memory_ = memory; }

  void forward(Inputs inputs, const Pass&) override {
    const auto* x = inputs.front().pointer<float>();
    const auto* weight = memory_.parameters.front()->value.pointer<float>();
    auto* y = memory_.output.pointer<float>();
    for (std::size_t n = 0; n < samples_; ++n)
      for (std::size_t i = 0; i < each_; ++i) y[n * each_ + i] = x[n * each_ + i] + weight[i];
  }

  void backward(Inputs, const Tensor& output_gradient, const Pass& pass) override {
    const auto dy = output_gradient.as<const float>();
    const auto gradient = memory_.parameters.front()->gradient.as<float>();
    std::ranges::fill(gradient.subspan(each_), 0.0F);  // positions that no sample has
    constexpr std::size_t strip = 64;                  // elements that are summed at a time, in float64
    for (std::size_t first = 0; first < each_; first += strip) {
      const std::size_t count = std::min(strip, each_ - first);
      std::array<double, strip> sums{};
      for (std::size_t n = 0; n < samples_; ++n)
        for (std::size_t i = 0; i < count; ++i) sums[i] += dy[n * each_ + first + i];
      for (std::size_t i = 0; i < count; ++i) gradient[first + i] = static_cast<float>(sums[i]);
    }
    pass.on_ready(memory_.parameters.front()->id, pass.stream);
    if (!memory_.input_gradient().empty()) std::ranges::copy(dy, memory_.input_gradient().pointer<float>());
  }

 private:
  std::size_t samples_, each_;  ///< elements of a sample
  OperationMemory memory_;
};

}  // namespace

std::unique_ptr<Operation> make_position(const TensorDesc& input, const PositionSpec& spec) {
  return std::make_unique<Position>(input, spec);
}

}  // namespace ronda::reference
