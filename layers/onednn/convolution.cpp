#include <ronda/core/buffer.hpp>
#include <ronda/core/error.hpp>
#include <ronda/layers/onednn/convolution_directions.hpp>
#include <ronda/layers/onednn/images.hpp>
#include <ronda/layers/onednn/operations.hpp>

#include <algorithm>
#include <optional>

namespace ronda::onednn {
namespace {

/// Convolution by the library, whose ReLUs would make 0 of NaN; ReLU and pooling by our loops; or all in one pass of
/// our own. What lies between convolution and pooling is large and not kept: behind a maximum, ReLU's backward needs
/// only the pooled output, since where that is positive, the winner was. Behind a mean it is kept, as it is before the
/// ReLU.
template <LayerNumber T>
class Convolution final : public Operation {
 public:
  Convolution(const Runtime& runtime, const ConvolutionProblem& spec, const OperationContext& context)
      : threads_(runtime.threads),
        spec_(spec),
        training_(context.mode == Mode::training),
        directions_(runtime, spec_, context) {
    const TensorDesc& convolved = directions_.output;
    plan_.output = convolved;
    if (spec.pool) {
      plan_.output = pooled(spec, convolved);
      pooling_ = pooling_of(spec, convolved);
    }
    relu_before_average_ = spec.pool && spec.pool->kind == PoolKind::average && spec.activation == Activation::relu;
    const TensorDesc& activated = relu_before_average_ ? convolved : plan_.output;
    activation_.emplace(images_of(activated).value(), spec.outputs, threads_);
    plan_.parameters = {directions_.weight};
    if (spec.bias) plan_.parameters.push_back({Shape{spec.outputs}, spec.input.dtype, {}});
    plan_.picks = directions_.picks;
    plan_.backward_reads_output = spec.activation == Activation::relu && !relu_before_average_;
    plan_.in_halves = context.in_halves && context.input_gradient && !spec.pool;
    plan_.second_half_reads_gradient = spec.activation == Activation::none;
    place(convolved.bytes(), activated.bytes());
  }

  void bind(const OperationMemory& memory) override {
    memory_ = memory;
    std::byte* kept = training_ ? memory.pass : memory.scratch + kept_offset_;
    winners_ = kept;
    masked_ = plan_.in_halves ? memory.between : memory.scratch + masked_offset_;
    convolved_ = !pooling_ ? memory.output.data() : relu_before_average_ ? kept : memory.scratch + between_offset_;
  }

  void forward(Inputs inputs, const Pass&) override {
    const Tensor& input = inputs.front();
    const std::byte* weight = memory_.parameters[0]->value.data();
    std::byte* scratch = memory_.scratch + computation_offset_;
    if (directions_.forward_is_fused) {
      directions_.fused->forward(input.pointer<T>(), memory_.parameters[0]->value.pointer<T>(),
                                 spec_.bias ? memory_.parameters[1]->value.pointer<T>() : nullptr,
                                 memory_.output.pointer<T>(), places_of_winners(), scratch);
      return;
    }
    const bool relu = !pooling_ && spec_.activation == Activation::relu;
    const std::byte* bias = spec_.bias ? memory_.parameters[1]->value.data() : nullptr;
    if (pools_in_tiles())
      return directions_.tiles->forward_and_pool(floats(input.data()), floats(weight), floats(bias),
                                                 spec_.activation == Activation::relu, floats(memory_.output.data()),
                                                 places_of_winners(), scratch);
    if (directions_.forward.in_tiles)
      directions_.tiles->forward(floats(input.data()), floats(weight), floats(bias), relu, floats(convolved_), scratch);
    else if (spec_.bias)
      directions_.forward.library->run({input.data(), weight, bias}, convolved_, scratch);
    else
      directions_.forward.library->run({input.data(), weight}, convolved_, scratch);
    if (pooling_)
      pooling_->forward(numbers(convolved_), memory_.output.pointer<T>(), winners_, threads_);
    else if (relu && !directions_.forward.in_tiles)
      rectify(numbers(convolved_), memory_.output.as<T>().size(), threads_);
  }

  void backward(Inputs inputs, const Tensor& output_gradient, const Pass& pass) override {
    const Gradients gradients = before_activation(output_gradient.pointer<T>());
    report_bias(pass);
    write_weight_gradient(inputs.front(), gradients, pass);
    if (!memory_.input_gradient().empty()) write_input_gradient(gradients);
  }

  /// With the bias's, which is summed where the ReLU's backward is done. Without pooling.
  void backward_inputs(Inputs, const Tensor& output_gradient, const Pass& pass) override {
    const Gradients gradients = before_activation(output_gradient.pointer<T>());
    report_bias(pass);
    write_input_gradient(gradients);
  }
  void backward_parameters(Inputs inputs, const Tensor& output_gradient, const Pass& pass) override {
    const T* dz = spec_.activation == Activation::relu ? numbers(masked_) : output_gradient.pointer<T>();
    write_weight_gradient(inputs.front(), {nullptr, dz}, pass);
  }

 private:
  static T* numbers(std::byte* bytes) { return reinterpret_cast<T*>(bytes); }
  /// What tiles take, which are of float32 alone.
  static const float* floats(const void* numbers) { return static_cast<const float*>(numbers); }
  static float* floats(void* numbers) { return static_cast<float*>(numbers); }

  /// Gradients before the activation.
  struct Gradients {
    const T* pooled;     ///< of the pooled output; null where the activation comes before the pooling
    const T* convolved;  ///< of the convolution proper; not written where the winners do everything
  };

  void write_weight_gradient(const Tensor& input, const Gradients& gradients, const Pass& pass) {
    Parameter& weight = *memory_.parameters[0];
    std::byte* scratch = memory_.scratch + computation_offset_;
    if (directions_.backward_weights.library)
      directions_.write_weight_gradient(input.data(), reinterpret_cast<const std::byte*>(gradients.convolved),
                                        weight.gradient.data(), scratch);
    else if (directions_.backward_weights.in_tiles)
      directions_.tiles->backward_weights(floats(input.data()), floats(gradients.convolved),
                                          floats(weight.gradient.data()), scratch);
    else if (directions_.fused)
      directions_.fused->backward_weights(input.pointer<T>(), gradients.pooled, places_of_winners(),
                                          weight.gradient.pointer<T>(), scratch);
    else
      directions_.winners->backward_weights(input.pointer<T>(), gradients.pooled, places_of_winners(),
                                            weight.gradient.pointer<T>(), scratch);
    pass.on_ready(weight.id, pass.stream);
  }

  void write_input_gradient(const Gradients& gradients) {
    const Parameter& weight = *memory_.parameters[0];
    std::byte* scratch = memory_.scratch + computation_offset_;
    if (directions_.backward_data.library)
      directions_.backward_data.library->run({gradients.convolved, weight.value.data()},
                                             memory_.input_gradient().data(), scratch);
    else if (directions_.backward_data.in_tiles)
      directions_.tiles->backward_data(floats(gradients.convolved), floats(weight.value.data()),
                                       floats(memory_.input_gradient().data()), scratch);
    else
      directions_.winners->backward_data(gradients.pooled, places_of_winners(), weight.value.pointer<T>(),
                                         memory_.input_gradient().pointer<T>(), scratch);
  }

  /// Whether the pooling is part of the convolution's last transform.
  [[nodiscard]] bool pools_in_tiles() const { return directions_.forward.in_tiles && directions_.tiles->pools(); }
  [[nodiscard]] bool spreads_gradients() const {
    return ConvolutionDirections::spreads(directions_.backward_weights) ||
           ConvolutionDirections::spreads(directions_.backward_data);
  }

  void place(std::size_t convolved_bytes, std::size_t activated_bytes) {
    ArenaPlan scratch, kept;
    kept.reserve(relu_before_average_ ? convolved_bytes : pooling_ ? pooling_->winner_bytes() : 0);
    if (training_)
      plan_.pass_bytes = kept.bytes();
    else
      kept_offset_ = scratch.reserve(kept.bytes());
    const bool between = !(directions_.forward_is_fused || pools_in_tiles()) || spreads_gradients();
    between_offset_ =
        scratch.reserve(pooling_ && between ? convolved_bytes : 0);  // forward: the output, backward: its gradient
    summing_offset_ =
        scratch.reserve(pooling_ && training_ ? pooling_->scratch_bytes(plan_.output.dtype, threads_) : 0);
    const std::size_t masked_bytes = training_ && spec_.activation == Activation::relu ? activated_bytes : 0;
    plan_.between_bytes = plan_.in_halves ? masked_bytes : 0;
    masked_offset_ = scratch.reserve(plan_.in_halves ? 0 : masked_bytes);
    sums_offset_ = scratch.reserve(training_ ? activation_->scratch_bytes() : 0);
    computation_offset_ = scratch.bytes();
    plan_.scratch_bytes = computation_offset_ + directions_.scratch_bytes();
  }

  void report_bias(const Pass& pass) const {
    if (spec_.bias) pass.on_ready(memory_.parameters[1]->id, pass.stream);
  }

  /// Also writes the bias's gradient.
  Gradients before_activation(const T* dy) {
    if (!pooling_) return {nullptr, masked(dy, memory_.output.data())};
    T* between = numbers(memory_.scratch + between_offset_);
    if (relu_before_average_) {
      pooling_->backward(dy, winners_, between, memory_.scratch + summing_offset_, threads_);
      return {nullptr, masked(between, convolved_)};
    }
    const T* pooled = masked(dy, memory_.output.data());
    if (spreads_gradients()) pooling_->backward(pooled, winners_, between, memory_.scratch + summing_offset_, threads_);
    return {pooled, between};
  }

  /// The gradient where y is positive. Also sums up the bias's gradient.
  const T* masked(const T* dy, std::byte* y) {
    const bool relu = spec_.activation == Activation::relu;
    T* dz = numbers(masked_);
    T* db = spec_.bias ? memory_.parameters[1]->gradient.pointer<T>() : nullptr;
    activation_->backward<T>(dy, relu ? numbers(y) : nullptr, dz, db, memory_.scratch + sums_offset_);
    return relu ? dz : dy;
  }

  std::uint8_t* places_of_winners() const { return reinterpret_cast<std::uint8_t*>(winners_); }

  int threads_;
  ConvolutionProblem spec_;
  bool training_, relu_before_average_ = false;
  ConvolutionDirections directions_;
  std::optional<Pooling> pooling_;
  std::optional<BiasAndActivation> activation_;
  std::size_t kept_offset_ = 0, between_offset_ = 0, summing_offset_ = 0, masked_offset_ = 0, sums_offset_ = 0,
              computation_offset_ = 0;
  OperationMemory memory_;
  std::byte *winners_ = nullptr, *convolved_ = nullptr;
  std::byte* masked_ = nullptr;  ///< the gradient of what the ReLU let through
};

}  // namespace

std::unique_ptr<Operation> make_convolution(const Runtime& runtime, const ConvolutionProblem& spec,
                                            const OperationContext& context) {
  const Shape convolved = convolution_output(spec);  // both complain of shapes
  if (spec.pool) static_cast<void>(pool_output(convolved, *spec.pool));
  return with_layer_number(spec.input.dtype, [&]<class T>(std::type_identity<T>) -> std::unique_ptr<Operation> {
    return std::make_unique<Convolution<T>>(runtime, spec, context);
  });
}

}  // namespace ronda::onednn
