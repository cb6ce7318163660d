#include <ronda/core/buffer.hpp>
#include <ronda/core/error.hpp>
#include <ronda/layers/onednn/dense_products.hpp>
#include <ronda/layers/onednn/images.hpp>
#include <ronda/layers/onednn/operations.hpp>

namespace ronda::onednn {
namespace {

template <LayerNumber T>
class Dense final : public Operation {
 public:
  Dense(const Runtime& runtime, const DenseMatrices& matrices, const OperationContext& context)
      : m_(matrices),
        products_(choose_products(runtime, matrices, context)),
        activation_({.samples = m_.batch, .groups = 1, .lanes = m_.outputs}, m_.outputs, runtime.threads) {
    plan_.output = {Shape{m_.batch, m_.outputs}, m_.dtype, {}};
    plan_.parameters = {products_->weight()};
    if (m_.bias) plan_.parameters.push_back({Shape{m_.outputs}, m_.dtype, {}});
    plan_.picks = products_->picks();
    plan_.backward_reads_output = m_.relu;
    plan_.in_halves = context.in_halves && context.input_gradient;
    plan_.second_half_reads_gradient = !m_.relu;
    ArenaPlan scratch;
    if (context.mode == Mode::training) {
      const std::size_t masked_bytes = m_.relu ? plan_.output.bytes() : 0;
      plan_.between_bytes = plan_.in_halves ? masked_bytes : 0;
      masked_offset_ = scratch.reserve(plan_.in_halves ? 0 : masked_bytes);
      sums_offset_ = scratch.reserve(activation_.scratch_bytes());
    }
    computation_offset_ = scratch.bytes();
    plan_.scratch_bytes = computation_offset_ + products_->scratch_bytes();
  }

  void bind(const OperationMemory& memory) override {
    memory_ = memory;
    masked_ = reinterpret_cast<T*>(plan_.in_halves ? memory.between : memory.scratch + masked_offset_);
  }

  void forward(Inputs inputs, const Pass& pass) override {
    const Tensor& input = inputs.front();
    const T* bias = m_.bias ? memory_.parameters[1]->value.pointer<T>() : nullptr;
    products_->forward(input.pointer<T>(), memory_.parameters[0]->value.pointer<T>(), bias, memory_.output.pointer<T>(),
                       memory_.scratch + computation_offset_, pass.mode);
  }

  void backward(Inputs inputs, const Tensor& output_gradient, const Pass& pass) override {
    const T* dz = before_activation(output_gradient, pass);
    write_weight_gradient(inputs.front(), dz, pass);
    if (!memory_.input_gradient().empty()) write_input_gradient(dz);
  }

  /// With the bias's, which is summed where the ReLU's backward is done.
  void backward_inputs(Inputs, const Tensor& output_gradient, const Pass& pass) override {
    write_input_gradient(before_activation(output_gradient, pass));
  }
  void backward_parameters(Inputs inputs, const Tensor& output_gradient, const Pass& pass) override {
    write_weight_gradient(inputs.front(), m_.relu ? masked_ : output_gradient.pointer<T>(), pass);
  }

 private:
  /// Also sums up the bias's gradient, and reports it.
  const T* before_activation(const Tensor& output_gradient, const Pass& pass) {
    const T* y = m_.relu ? memory_.output.pointer<T>() : nullptr;
    T* dz = m_.relu ? masked_ : nullptr;
    T* db = m_.bias ? memory_.parameters[1]->gradient.pointer<T>() : nullptr;
    activation_.backward<T>(output_gradient.pointer<T>(), y, dz, db, memory_.scratch + sums_offset_);
    if (m_.bias) pass.on_ready(memory_.parameters[1]->id, pass.stream);
    return m_.relu ? dz : output_gradient.pointer<T>();
  }
  void write_weight_gradient(const Tensor& input, const T* dz, const Pass& pass) {
    Parameter& weight = *memory_.parameters[0];
    products_->backward_weights(input.pointer<T>(), dz, weight.gradient.pointer<T>(),
                                memory_.scratch + computation_offset_);
    pass.on_ready(weight.id, pass.stream);
  }
  void write_input_gradient(const T* dz) {
    products_->backward_data(dz, memory_.parameters[0]->value.pointer<T>(), memory_.input_gradient().pointer<T>(),
                             memory_.scratch + computation_offset_);
  }

  DenseMatrices m_;
  std::unique_ptr<DenseProducts> products_;
  BiasAndActivation activation_;
  T* masked_ = nullptr;  ///< the gradient of what the ReLU let through
  std::size_t masked_offset_ = 0, sums_offset_ = 0, computation_offset_ = 0;
  OperationMemory memory_;
};

/// Whether every sample's bytes lie together and nothing else lies between them, so that they can be read as a matrix.
bool is_matrix(const TensorDesc& input) {
  if (input.padded_count() != input.count()) return false;
  if (input.shape.rank() == 2) return same_bytes(input, {input.shape, input.dtype, {}});
  return input.shape[0] == 1 || input.layout.without_outermost().has_value();
}

}  // namespace

std::unique_ptr<Operation> make_dense(const Runtime& runtime, const DenseProblem& spec,
                                      const OperationContext& context) {
  const Shape& in = spec.input.shape;
  if (in.rank() < 2) throw InputError("a dense layer takes (N, features), not " + in.text());
  if (spec.outputs < 1) throw InputError("a dense layer has at least one output");
  if (!is_matrix(spec.input)) throw LogicError("a dense layer cannot read " + spec.input.text() + " as a matrix");
  const DenseMatrices matrices(spec, in[0], in.without_batch().count());
  return with_layer_number(spec.input.dtype, [&]<class T>(std::type_identity<T>) -> std::unique_ptr<Operation> {
    return std::make_unique<Dense<T>>(runtime, matrices, context);
  });
}

}  // namespace ronda::onednn
