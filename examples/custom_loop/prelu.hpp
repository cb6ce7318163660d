#pragma once
#include <ronda/ronda.hpp>

#include <algorithm>

/// A layer of one's own: max(x, 0) + a · min(x, 0), with a learned slope a for each feature (He et al., "Delving deep
/// into rectifiers", ICCV 2015). Starts as a ReLU, with slopes of zero.
class PReLU final : public ronda::Layer {
 public:
  [[nodiscard]] std::string_view kind() const noexcept override { return "prelu"; }

  /// Backward always returns memory that was asked for here: saying so saves some.
  [[nodiscard]] ronda::GradientFlow gradient_flow() const noexcept override { return ronda::GradientFlow::own; }

  /// Before there is memory: says what shapes it takes and gives, and asks for what it needs.
  ronda::TensorDesc plan(const ronda::TensorDesc& input, ronda::Planner& planner) override {
    if (input.shape.rank() != 2) throw ronda::InputError("this PReLU takes (N, features), not " + input.text());
    desc_ = input;
    needs_input_gradient_ = planner.input_gradient_needed();
    const std::string name = planner.next_name(kind());
    slope_id_ = planner.parameter({.name = name + ".weight",
                                   .desc = {{input.shape[1]}, ronda::DType::float32, {}},
                                   .initializer = ronda::Initializer::zeros});
    output_id_ = planner.buffer(name + " output", desc_.bytes(), ronda::Lifetime::pass);
    if (needs_input_gradient_)
      input_gradient_id_ = planner.buffer(name + " input gradient", desc_.bytes(), ronda::Lifetime::gradient);
    return desc_;
  }

  /// Now there is memory: views of it, which stay valid.
  void bind(const ronda::Bindings& bindings) override {
    slope_ = bindings.parameter(slope_id_);
    output_ = bindings.tensor(output_id_, desc_);
    if (needs_input_gradient_) input_gradient_ = bindings.tensor(input_gradient_id_, desc_);
  }

  const ronda::Tensor& forward(const ronda::Tensor& input, const ronda::Pass&) override {
    input_ = input;  // a view: what it shows stays until backward
    const auto x = input.as<const float>(), a = slope_.value.as<const float>();
    const auto y = output_.as<float>();
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = x[i] > 0 ? x[i] : a[i % a.size()] * x[i];
    return output_;
  }

  const ronda::Tensor& backward(const ronda::Tensor& output_gradient, const ronda::Pass& pass) override {
    const auto x = input_.as<const float>(), dy = output_gradient.as<const float>(), a = slope_.value.as<const float>();
    const auto da = slope_.gradient.as<float>();
    std::ranges::fill(da, 0.0F);  // the memory holds the last step's sums
    for (std::size_t i = 0; i < x.size(); ++i) da[i % da.size()] += std::min(x[i], 0.0F) * dy[i];
    pass.on_ready(slope_id_, pass.stream);  // its reduction may start now, beside what follows

    if (!needs_input_gradient_) return input_gradient_;
    const auto dx = input_gradient_.as<float>();
    for (std::size_t i = 0; i < x.size(); ++i) dx[i] = x[i] > 0 ? dy[i] : a[i % a.size()] * dy[i];
    return input_gradient_;
  }

 private:
  ronda::TensorDesc desc_;
  bool needs_input_gradient_ = false;
  ronda::ParameterId slope_id_{};
  ronda::BufferId output_id_{}, input_gradient_id_{};
  ronda::Parameter slope_;
  ronda::Tensor input_, output_, input_gradient_;
};
