#include <ronda/layers/onednn/images.hpp>
#include <ronda/layers/onednn/memory_desc.hpp>
#include <ronda/layers/onednn/operations.hpp>
#include <ronda/runtime/core/buffer.hpp>
#include <ronda/runtime/core/error.hpp>

#include <algorithm>
#include <array>
#include <optional>

namespace ronda::onednn {
namespace {

using dnnl::memory;

/// y (batch, outputs) = x (batch, inputs) · wᵀ + b, as the library knows them.
struct Matrices {
  std::int64_t batch, inputs, outputs;
  bool bias, relu;
  memory::desc x, y;

  Matrices(const DenseSpec& spec, std::int64_t batch_size, std::int64_t features)
      : batch(batch_size),
        inputs(features),
        outputs(spec.outputs),
        bias(spec.bias),
        relu(spec.activation == Activation::relu),
        x(matrix(batch, inputs)),
        y(matrix(batch, outputs)) {}
  static memory::desc matrix(std::int64_t rows, std::int64_t columns) {
    return plain_layout({rows, columns}, Axes::weight);
  }
  static memory::desc transposed(std::int64_t rows, std::int64_t columns) {
    return to_memory_desc({Shape{rows, columns}, DType::float32, Layout(std::array{1, 0}, {})}, Axes::weight);
  }
  [[nodiscard]] memory::desc any_weight() const { return any_layout({outputs, inputs}, Axes::weight); }
  [[nodiscard]] memory::desc plain_weight() const { return matrix(outputs, inputs); }
  [[nodiscard]] std::string text() const {
    return Shape{batch, inputs}.text() + " to " + std::to_string(outputs) + (bias ? "" : " without bias") +
           (relu ? " with relu" : "");
  }
};

/// The computations of a dense operation whose weights have one layout, which all directions share.
/// forward: (x, w, b) → y; backward_weights: (x, dz) → dw; backward_data: (dz, w) → dx.
struct Directions {
  memory::desc weight;
  std::unique_ptr<Computation> forward, backward_weights,
      backward_data;  ///< the latter two empty where nobody needs them
  std::string picks;

  [[nodiscard]] std::array<Computation*, 3> all() const {
    return {forward.get(), backward_weights.get(), backward_data.get()};
  }
};

/// The library's inner product, with weights in a given layout or (`any`) in the one it likes best.
class InnerProduct {
 public:
  InnerProduct(const Runtime& runtime, const Matrices& matrices, const memory::desc& weight)
      : runtime_(runtime),
        m_(matrices),
        bias_(m_.bias ? plain_layout({m_.outputs}, Axes::weight) : memory::desc()),
        forward_(adapter::inner_product_forward(runtime.engine, m_.x, weight, bias_, m_.y,
                                                Computation::attributes(m_.relu))) {}

  [[nodiscard]] memory::desc weight() const { return forward_.weights_desc(); }

  [[nodiscard]] std::unique_ptr<Computation> forward() const {
    std::vector<Computation::Argument> inputs{{DNNL_ARG_SRC, m_.x, m_.x}, {DNNL_ARG_WEIGHTS, weight(), weight()}};
    if (m_.bias) inputs.push_back({DNNL_ARG_BIAS, bias_, bias_});
    return computation(forward_, dnnl::inner_product_forward(forward_), inputs, {DNNL_ARG_DST, m_.y, m_.y});
  }
  [[nodiscard]] std::unique_ptr<Computation> backward_weights() const {
    auto description = weights_description(weight());
    if (is_fallback(description.impl_info_str())) description = weights_description(m_.any_weight());
    return computation(description, dnnl::inner_product_backward_weights(description),
                       {{DNNL_ARG_SRC, m_.x, m_.x}, {DNNL_ARG_DIFF_DST, m_.y, m_.y}},
                       {DNNL_ARG_DIFF_WEIGHTS, weight(), description.diff_weights_desc()});
  }
  [[nodiscard]] std::unique_ptr<Computation> backward_data() const {
    auto description = data_description(weight());
    if (is_fallback(description.impl_info_str())) description = data_description(m_.any_weight());
    return computation(description, dnnl::inner_product_backward_data(description),
                       {{DNNL_ARG_DIFF_DST, m_.y, m_.y}, {DNNL_ARG_WEIGHTS, weight(), description.weights_desc()}},
                       {DNNL_ARG_DIFF_SRC, m_.x, m_.x});
  }

 private:
  [[nodiscard]] dnnl::inner_product_backward_weights::primitive_desc weights_description(
      const memory::desc& weight) const {
    return adapter::inner_product_backward_weights(runtime_.engine, m_.x, weight, m_.y, forward_,
                                                   Computation::attributes());
  }
  [[nodiscard]] dnnl::inner_product_backward_data::primitive_desc data_description(const memory::desc& weight) const {
    return adapter::inner_product_backward_data(runtime_.engine, m_.x, weight, m_.y, forward_,
                                                Computation::attributes());
  }
  template <class Description>
  std::unique_ptr<Computation> computation(const Description& description, const dnnl::primitive& primitive,
                                           std::vector<Computation::Argument> inputs,
                                           const Computation::Argument& output) const {
    return std::make_unique<Computation>(runtime_, primitive, description.scratchpad_desc(), std::move(inputs), output);
  }

  const Runtime& runtime_;
  const Matrices& m_;
  memory::desc bias_;
  dnnl::inner_product_forward::primitive_desc forward_;
};

/// Plain matrix products, with weights as (outputs, inputs): the other way round, rows of a power of two collide in
/// cache.
class MatrixProduct {
 public:
  MatrixProduct(const Runtime& runtime, const Matrices& matrices) : runtime_(runtime), m_(matrices) {}

  [[nodiscard]] std::unique_ptr<Computation> forward() const {
    const memory::desc w = Matrices::transposed(m_.inputs, m_.outputs);
    const memory::desc b = m_.bias ? Matrices::matrix(1, m_.outputs) : memory::desc();
    std::vector<Computation::Argument> inputs{{DNNL_ARG_SRC, m_.x, m_.x}, {DNNL_ARG_WEIGHTS, w, w}};
    if (m_.bias) inputs.push_back({DNNL_ARG_BIAS, b, b});
    return product(m_.x, w, b, m_.y, m_.relu, inputs);
  }
  [[nodiscard]] std::unique_ptr<Computation> backward_weights() const {
    const memory::desc dz = Matrices::transposed(m_.outputs, m_.batch);
    return product(dz, m_.x, memory::desc(), m_.plain_weight(), false,
                   {{DNNL_ARG_WEIGHTS, m_.x, m_.x}, {DNNL_ARG_SRC, dz, dz}});
  }
  [[nodiscard]] std::unique_ptr<Computation> backward_data() const {
    const memory::desc w = m_.plain_weight();
    return product(m_.y, w, memory::desc(), m_.x, false, {{DNNL_ARG_SRC, m_.y, m_.y}, {DNNL_ARG_WEIGHTS, w, w}});
  }

 private:
  std::unique_ptr<Computation> product(const memory::desc& a, const memory::desc& b, const memory::desc& bias,
                                       const memory::desc& c, bool relu,
                                       const std::vector<Computation::Argument>& inputs) const {
    const auto description = adapter::matmul(runtime_.engine, a, b, bias, c, Computation::attributes(relu));
    return std::make_unique<Computation>(runtime_, dnnl::matmul(description), description.scratchpad_desc(), inputs,
                                         Computation::Argument{DNNL_ARG_DST, c, c});
  }

  const Runtime& runtime_;
  const Matrices& m_;
};

/// Weights in the library's own (blocked) layout. Empty where it has none or one that Ronda cannot name.
std::optional<Directions> blocked_directions(const Runtime& runtime, const Matrices& m,
                                             const OperationContext& context) {
  try {
    const InnerProduct product(runtime, m, m.any_weight());
    if (!to_tensor_desc(product.weight(), Axes::weight)) return std::nullopt;
    Directions result{product.weight(), product.forward(), nullptr, nullptr, "blocked weights"};
    if (context.mode == Mode::training) result.backward_weights = product.backward_weights();
    if (context.mode == Mode::training && context.input_gradient) result.backward_data = product.backward_data();
    return result;
  } catch (const dnnl::error&) {
    return std::nullopt;
  }
}

/// Weights in rows: the better of two implementations in each direction.
Directions plain_directions(const Runtime& runtime, const Matrices& m, const OperationContext& context) {
  const InnerProduct inner(runtime, m, m.plain_weight());
  const MatrixProduct matrix(runtime, m);
  Directions result{m.plain_weight(), nullptr, nullptr, nullptr, "plain weights"};
  const auto choose = [&](const char* direction, auto&& make) {
    std::vector<Option> options;
    options.push_back({"inner product", if_possible([&] { return make(inner); })});
    options.push_back({"matrix product", if_possible([&] { return make(matrix); })});
    Option chosen = pick(context.picker, std::string("dense ") + direction + " " + m.text(), std::move(options));
    result.picks += std::string(", ") + direction + " " + chosen.name;
    return std::move(chosen.computation);
  };
  result.forward = choose("forward", [](const auto& product) { return product.forward(); });
  if (context.mode == Mode::training)
    result.backward_weights =
        choose("backward weights", [](const auto& product) { return product.backward_weights(); });
  if (context.mode == Mode::training && context.input_gradient)
    result.backward_data = choose("backward data", [](const auto& product) { return product.backward_data(); });
  return result;
}

std::size_t rehearsal_bytes(const Directions& directions) {
  std::size_t bytes = 0;
  for (const Computation* direction : directions.all())
    if (direction != nullptr) bytes = std::max(bytes, direction->rehearsal_bytes());
  return bytes;
}

/// The layout of the weights by the time of all directions together.
Directions choose_directions(const Runtime& runtime, const Matrices& m, const OperationContext& context) {
  Directions plain = plain_directions(runtime, m, context);
  std::optional<Directions> blocked = blocked_directions(runtime, m, context);
  const Buffer memory = Buffer::host(std::max(rehearsal_bytes(plain), blocked ? rehearsal_bytes(*blocked) : 0));
  const auto rehearsal = [&memory](const Directions& directions) {
    return [&memory, &directions] {
      for (Computation* direction : directions.all())
        if (direction != nullptr) direction->rehearse(memory.data());
    };
  };
  const std::array candidates{Candidate{"plain", rehearsal(plain)},
                              Candidate{"blocked", blocked ? std::function<void()>(rehearsal(*blocked)) : nullptr}};
  std::string question = "dense weights " + m.text();
  if (context.mode == Mode::evaluation)
    question += ", evaluation";
  else if (!context.input_gradient)
    question += ", no input gradient";
  return std::move(context.picker.pick(question, candidates) == 0 ? plain : *blocked);
}

class Dense final : public Operation {
 public:
  Dense(const Runtime& runtime, const Matrices& matrices, const OperationContext& context)
      : m_(matrices),
        directions_(choose_directions(runtime, matrices, context)),
        activation_({.samples = m_.batch, .groups = 1, .lanes = m_.outputs}, m_.outputs, runtime.threads) {
    plan_.output = {Shape{m_.batch, m_.outputs}, DType::float32, {}};
    plan_.parameters = {to_tensor_desc(directions_.weight, Axes::weight).value()};
    if (m_.bias) plan_.parameters.push_back({Shape{m_.outputs}, DType::float32, {}});
    plan_.picks = directions_.picks;
    ArenaPlan scratch;
    if (context.mode == Mode::training) {
      before_activation_offset_ = scratch.reserve(m_.relu ? plan_.output.bytes() : 0);
      sums_offset_ = scratch.reserve(activation_.scratch_bytes());
    }
    computation_offset_ = scratch.bytes();
    for (const Computation* direction : directions_.all())
      if (direction != nullptr)
        plan_.scratch_bytes = std::max(plan_.scratch_bytes, computation_offset_ + direction->scratch_bytes());
  }

  void bind(const OperationMemory& memory) override { memory_ = memory; }

  void forward(const Tensor& input, const Pass&) override {
    const std::byte* weight = memory_.parameters[0]->value.data();
    std::byte* scratch = memory_.scratch + computation_offset_;
    if (m_.bias)
      directions_.forward->run({input.data(), weight, memory_.parameters[1]->value.data()}, memory_.output.data(),
                               scratch);
    else
      directions_.forward->run({input.data(), weight}, memory_.output.data(), scratch);
  }

  void backward(const Tensor& input, const Tensor& output_gradient, const Pass& pass) override {
    Parameter& weight = *memory_.parameters[0];
    std::byte* scratch = memory_.scratch + computation_offset_;
    const std::byte* dz = before_activation(output_gradient);
    if (m_.bias) pass.on_ready(memory_.parameters[1]->id, pass.stream);
    directions_.backward_weights->run({input.data(), dz}, weight.gradient.data(), scratch);
    pass.on_ready(weight.id, pass.stream);
    if (!memory_.input_gradient.empty())
      directions_.backward_data->run({dz, weight.value.data()}, memory_.input_gradient.data(), scratch);
  }

 private:
  /// Also sums up the bias's gradient.
  const std::byte* before_activation(const Tensor& output_gradient) {
    const float* y = m_.relu ? memory_.output.pointer<float>() : nullptr;
    float* dz = m_.relu ? reinterpret_cast<float*>(memory_.scratch + before_activation_offset_) : nullptr;
    float* db = m_.bias ? memory_.parameters[1]->gradient.pointer<float>() : nullptr;
    activation_.backward(output_gradient.pointer<float>(), y, dz, db, memory_.scratch + sums_offset_);
    return m_.relu ? memory_.scratch + before_activation_offset_ : output_gradient.data();
  }

  Matrices m_;
  Directions directions_;
  BiasAndActivation activation_;
  std::size_t before_activation_offset_ = 0, sums_offset_ = 0, computation_offset_ = 0;
  OperationMemory memory_;
};

/// Whether every sample's bytes lie together and nothing else lies between them, so that they can be read as a matrix.
bool is_matrix(const TensorDesc& input) {
  if (input.padded_count() != input.count()) return false;
  if (input.shape.rank() == 2) return same_bytes(input, {input.shape, input.dtype, {}});
  return input.shape[0] == 1 || input.layout.without_outermost().has_value();
}

}  // namespace

std::unique_ptr<Operation> make_dense(const Runtime& runtime, const DenseSpec& spec, const OperationContext& context) {
  const Shape& in = spec.input.shape;
  if (in.rank() < 2) throw InputError("a dense layer takes (N, features), not " + in.text());
  if (spec.outputs < 1) throw InputError("a dense layer has at least one output");
  if (!is_matrix(spec.input)) throw LogicError("a dense layer cannot read " + spec.input.text() + " as a matrix");
  return std::make_unique<Dense>(runtime, Matrices(spec, in[0], in.without_batch().count()), context);
}

}  // namespace ronda::onednn
