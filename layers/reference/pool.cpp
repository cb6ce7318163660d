#include <ronda/layers/arithmetic.hpp>
#include <ronda/layers/reference/operations.hpp>

namespace ronda::reference {
namespace {

class Pool final : public Operation {
 public:
  Pool(const TensorDesc& input, const PoolSpec& spec) : input_(input), spec_(spec) {
    plan_.output = {pool_output(input.shape, spec), DType::float32, {}};
    plan_.picks = "plain loops";
    plan_.backward_reads_output = false;
  }

  void bind(const OperationMemory& memory) override { memory_ = memory; }

  void forward(Inputs inputs, const Pass&) override {
    const Tensor& input = inputs.front();
    const Accessor x(input), y(memory_.output);
    each_output([&](auto n, auto oh, auto ow, auto c) {
      if (spec_.kind == PoolKind::maximum) {
        const auto [h, w] = winner(x, n, oh, ow, c);
        y(n, oh, ow, c) = x(n, h, w, c);
      } else {
        BlockSum sum;
        std::int64_t count = 0;
        each_in_window(oh, ow, [&](auto h, auto w) { sum.add(x(n, h, w, c)), ++count; });
        y(n, oh, ow, c) = sum.value() / static_cast<float>(count);
      }
    });
  }

  void backward(Inputs inputs, const Tensor& output_gradient, const Pass&) override {
    const Tensor& input = inputs.front();
    if (memory_.input_gradient().empty()) return;
    const Accessor x(input), dy(output_gradient), dx(memory_.input_gradient());
    std::fill_n(memory_.input_gradient().pointer<float>(), input_.padded_count(), 0.0F);
    each_output([&](auto n, auto oh, auto ow, auto c) {
      const float gradient = dy(n, oh, ow, c);
      if (spec_.kind == PoolKind::maximum) {
        const auto [h, w] = winner(x, n, oh, ow, c);
        dx(n, h, w, c) += gradient;
      } else {
        std::int64_t count = 0;
        each_in_window(oh, ow, [&](auto, auto) { ++count; });
        each_in_window(oh, ow, [&](auto h, auto w) { dx(n, h, w, c) += gradient / static_cast<float>(count); });
      }
    });
  }

 private:
  template <class Body>
  void each_output(Body body) const {
    const Shape& out = plan_.output.shape;
    for (std::int64_t n = 0; n < out[0]; ++n)
      for (std::int64_t h = 0; h < out[1]; ++h)
        for (std::int64_t w = 0; w < out[2]; ++w)
          for (std::int64_t c = 0; c < out[3]; ++c) body(n, h, w, c);
  }

  template <class Body>
  void each_in_window(std::int64_t oh, std::int64_t ow, Body body) const {
    const std::int64_t top = oh * spec_.stride.height - spec_.padding.height,
                       left = ow * spec_.stride.width - spec_.padding.width;
    const std::int64_t bottom = std::min(top + spec_.kernel.height, input_.shape[1]),
                       right = std::min(left + spec_.kernel.width, input_.shape[2]);
    for (std::int64_t h = std::max<std::int64_t>(top, 0); h < bottom; ++h)
      for (std::int64_t w = std::max<std::int64_t>(left, 0); w < right; ++w) body(h, w);
  }

  /// The first of the largest, or the last NaN, as PyTorch.
  std::pair<std::int64_t, std::int64_t> winner(const Accessor& x, std::int64_t n, std::int64_t oh, std::int64_t ow,
                                               std::int64_t c) const {
    std::pair<std::int64_t, std::int64_t> best{-1, -1};
    each_in_window(oh, ow, [&](auto h, auto w) {
      if (best.first < 0 || beats(x(n, h, w, c), x(n, best.first, best.second, c))) best = {h, w};
    });
    return best;
  }

  TensorDesc input_;
  PoolSpec spec_;
  OperationMemory memory_;
};

}  // namespace

std::unique_ptr<Operation> make_pool(const TensorDesc& input, const PoolSpec& spec) {
  return std::make_unique<Pool>(input, spec);
}

}  // namespace ronda::reference
