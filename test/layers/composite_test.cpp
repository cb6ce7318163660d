// Composites as a user writes them (docs/custom_loop.md), nested at random: gradients against finite differences.
#include <memory>
#include <utility>

#include "../../examples/custom_loop/prelu.hpp"
#include "../../examples/custom_loop/residual.hpp"
#include "support/gradient_probe.hpp"
#include "support/seed.hpp"

using namespace ronda;
using namespace ronda::test;

namespace {

/// Returns what it is given, both ways: the same memory.
class Identity final : public Layer {
 public:
  [[nodiscard]] std::string_view kind() const noexcept override { return "identity"; }
  TensorDesc plan(const TensorDesc& input, Planner&) override { return input; }
  void bind(const Bindings&) override {}
  const Tensor& forward(const Tensor& input, const Pass&) override { return input_ = input; }
  const Tensor& backward(const Tensor& gradient, const Pass&) override { return gradient_ = gradient; }

 private:
  Tensor input_, gradient_;
};

/// Gives memory of its own, both ways.
class Negate final : public Layer {
 public:
  [[nodiscard]] std::string_view kind() const noexcept override { return "negate"; }
  TensorDesc plan(const TensorDesc& input, Planner& planner) override {
    output_id_ = planner.buffer("negate output", input.bytes(), Lifetime::pass);
    gradient_id_ = planner.buffer("negate gradient", input.bytes(), Lifetime::gradient);
    return desc_ = input;
  }
  void bind(const Bindings& bindings) override {
    output_ = bindings.tensor(output_id_, desc_);
    gradient_ = bindings.tensor(gradient_id_, desc_);
  }
  const Tensor& forward(const Tensor& input, const Pass&) override {
    for (std::size_t i = 0; i < input.as<float>().size(); ++i) output_.as<float>()[i] = -input.as<float>()[i];
    return output_;
  }
  const Tensor& backward(const Tensor& gradient, const Pass&) override {
    for (std::size_t i = 0; i < gradient.as<float>().size(); ++i) gradient_.as<float>()[i] = -gradient.as<float>()[i];
    return gradient_;
  }

 private:
  TensorDesc desc_;
  BufferId output_id_{}, gradient_id_{};
  Tensor output_, gradient_;
};

using Children = std::vector<std::unique_ptr<Layer>>;

/// The sum of its children's outputs, and of its input where it has a shortcut. Its backward calls them in one order
/// or the other, and looks at what it was given and at all that they returned when all are through.
class Sum final : public Layer {
 public:
  Sum(Children children, bool shortcut, bool last_first)
      : children_(std::move(children)), shortcut_(shortcut), last_first_(last_first) {}
  [[nodiscard]] std::string_view kind() const noexcept override { return "sum"; }
  TensorDesc plan(const TensorDesc& input, Planner& planner) override {
    for (auto& child : children_) planner.plan(*child, input);
    output_id_ = planner.buffer("sum output", input.bytes(), Lifetime::pass);
    gradient_id_ = planner.buffer("sum gradient", input.bytes(), Lifetime::gradient);
    return desc_ = input;
  }
  void bind(const Bindings& bindings) override {
    for (auto& child : children_) child->bind(bindings);
    output_ = bindings.tensor(output_id_, desc_);
    gradient_ = bindings.tensor(gradient_id_, desc_);
  }
  const Tensor& forward(const Tensor& input, const Pass& pass) override {
    std::vector<const Tensor*> terms;
    if (shortcut_) terms.push_back(&input);
    for (auto& child : children_) terms.push_back(&child->forward(input, pass));
    return add(output_, terms);
  }
  const Tensor& backward(const Tensor& output_gradient, const Pass& pass) override {
    std::vector<const Tensor*> terms;
    for (std::size_t i = 0; i < children_.size(); ++i)
      terms.push_back(&children_[last_first_ ? children_.size() - 1 - i : i]->backward(output_gradient, pass));
    if (shortcut_) terms.push_back(&output_gradient);
    return add(gradient_, terms);
  }

 private:
  static const Tensor& add(const Tensor& to, const std::vector<const Tensor*>& terms) {
    const auto sum = to.as<float>();
    for (std::size_t i = 0; i < sum.size(); ++i) {
      float total = 0;
      for (const Tensor* term : terms) total += term->as<float>()[i];
      sum[i] = total;
    }
    return to;
  }

  Children children_;
  bool shortcut_, last_first_;
  TensorDesc desc_;
  BufferId output_id_{}, gradient_id_{};
  Tensor output_, gradient_;
};

/// Its children one after another, as a user would call them; returns the first one's gradient.
class InARow final : public Layer {
 public:
  explicit InARow(Children children) : children_(std::move(children)) {}
  [[nodiscard]] std::string_view kind() const noexcept override { return "in_a_row"; }
  TensorDesc plan(const TensorDesc& input, Planner& planner) override {
    TensorDesc desc = input;
    for (auto& child : children_) desc = planner.plan(*child, desc);
    return desc;
  }
  void bind(const Bindings& bindings) override {
    for (auto& child : children_) child->bind(bindings);
  }
  const Tensor& forward(const Tensor& input, const Pass& pass) override {
    const Tensor* tensor = &input;
    for (auto& child : children_) tensor = &child->forward(*tensor, pass);
    return *tensor;
  }
  const Tensor& backward(const Tensor& output_gradient, const Pass& pass) override {
    const Tensor* gradient = &output_gradient;
    for (std::size_t i = children_.size(); i-- > 0;) gradient = &children_[i]->backward(*gradient, pass);
    return *gradient;
  }

 private:
  Children children_;
};

constexpr std::int64_t features = 5;

/// A random layer of (N, features).
class Garden {
 public:
  explicit Garden(std::uint64_t seed) : key_(seed, Purpose::test, 1) {}

  std::unique_ptr<Layer> layer(int depth) {
    switch (depth == 0 ? below(3) : 3 + below(5)) {
      case 0: return std::make_unique<Dense>(features, below(2) == 0);
      case 1: return std::make_unique<Identity>();
      case 2: return std::make_unique<Negate>();
      case 3: return std::make_unique<InARow>(children(1 + below(3), depth));
      case 4: return std::make_unique<Sum>(children(1, depth), true, false);
      case 5: return std::make_unique<Sum>(children(2, depth), below(2) == 0, below(2) == 0);
      case 6: return std::make_unique<Sum>(children(3, depth), below(2) == 0, below(2) == 0);
      default: return sequential(1 + below(4), depth);
    }
  }
  std::unique_ptr<Sequential> sequential(std::uint64_t count, int depth) {
    auto model = std::make_unique<Sequential>();
    for (auto& child : children(count, depth)) model->add(std::move(child));
    return model;
  }

 private:
  Children children(std::uint64_t count, int depth) {
    Children children;
    for (std::uint64_t i = 0; i < count; ++i)
      children.push_back(layer(static_cast<int>(below(static_cast<std::uint64_t>(depth)))));
    return children;
  }
  std::uint64_t below(std::uint64_t end) { return key_.below(end, count_++); }

  RngKey key_;
  std::uint64_t count_ = 0;
};

}  // namespace

TEST_CASE("gradients of composites equal finite differences, however they are nested") {
  const auto primitives = make_reference_primitives();
  for (std::uint64_t seed = test::seed(); seed < test::seed() + 60; ++seed) {
    Garden garden(seed);
    Sequential model;
    model.add(Dense(features));
    for (int i = 0; i < 3; ++i) model.add(garden.layer(2));
    model.add(Dense(features));
    FirstPicker picker;
    Probe(model, Shape{3, features}, *primitives, picker).check("nesting " + std::to_string(seed));
  }
}

TEST_CASE("the residual block of the documentation, around layers that choose their layouts") {
  const auto primitives = make_onednn_primitives(1);
  FirstPicker picker;
  const auto block = [] { return Residual(Sequential(Conv2d(16, 3, 1, 1), Conv2d(16, 3, 1, 1))); };
  Sequential images(Conv2d(16, 3, 1, 1), block(), block(), Flatten(), Dense(4));
  Probe(images, Shape{2, 6, 5, 1}, *primitives, picker).check("residual blocks of convolutions");
  Sequential features(Dense(8), Residual(Sequential(Dense(8), PReLU(), Residual(Sequential(Dense(8))))), Dense(4));
  Probe(features, Shape{3, 5}, *primitives, picker).check("residual blocks of dense layers");
}
