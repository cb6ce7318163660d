#pragma once
#include <ronda/core/error.hpp>
#include <ronda/ronda.hpp>

#include <utility>

/// A layer of one's own that is made of others: x + f(x) (He et al., "Deep residual learning for image recognition",
/// CVPR 2016). f is a Sequential that gives the shape it takes.
class Residual final : public ronda::Layer {
 public:
  explicit Residual(ronda::Sequential inner) : inner_(std::move(inner)) {}
  [[nodiscard]] std::string_view kind() const noexcept override { return "residual"; }

  ronda::TensorDesc plan(const ronda::TensorDesc& input, ronda::Planner& planner) override {
    desc_ = input;
    const ronda::TensorDesc inner = planner.plan(inner_, input);
    if (inner.shape != input.shape)
      throw ronda::InputError("a residual block takes and gives one shape, not " + input.text() + " and " +
                              inner.text());
    needs_input_gradient_ = planner.input_gradient_needed();
    const std::string name = planner.next_name(kind());
    output_id_ = planner.buffer(name + " output", desc_.bytes(), ronda::Lifetime::pass);
    if (needs_input_gradient_)
      input_gradient_id_ = planner.buffer(name + " input gradient", desc_.bytes(), ronda::Lifetime::gradient);
    return desc_;
  }

  void bind(const ronda::Bindings& bindings) override {
    inner_.bind(bindings);
    output_ = bindings.tensor(output_id_, desc_);
    if (needs_input_gradient_) input_gradient_ = bindings.tensor(input_gradient_id_, desc_);
  }

  const ronda::Tensor& forward(const ronda::Tensor& input, const ronda::Pass& pass) override {
    add(input, inner_.forward(input, pass), output_);
    return output_;
  }

  /// What was given and what the inner layers return both stay until this returns, in whatever order they are used.
  const ronda::Tensor& backward(const ronda::Tensor& output_gradient, const ronda::Pass& pass) override {
    const ronda::Tensor& through = inner_.backward(output_gradient, pass);
    if (needs_input_gradient_) add(output_gradient, through, input_gradient_);
    return input_gradient_;
  }

  void visit(ronda::StateVisitor& visitor) override { inner_.visit(visitor); }

 private:
  static void add(const ronda::Tensor& a, const ronda::Tensor& b, const ronda::Tensor& sum) {
    const auto x = a.as<const float>(), y = b.as<const float>();
    const auto z = sum.as<float>();
    for (std::size_t i = 0; i < z.size(); ++i) z[i] = x[i] + y[i];
  }

  ronda::Sequential inner_;
  ronda::TensorDesc desc_;
  bool needs_input_gradient_ = false;
  ronda::BufferId output_id_{}, input_gradient_id_{};
  ronda::Tensor output_, input_gradient_;
};
