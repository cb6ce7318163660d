#include <ronda/core/buffer.hpp>
#include <ronda/core/error.hpp>
#include <ronda/layers/onednn/fused_convolution.hpp>
#include <ronda/layers/onednn/images.hpp>
#include <ronda/layers/onednn/memory_desc.hpp>
#include <ronda/layers/onednn/operations.hpp>
#include <ronda/layers/onednn/pooling.hpp>
#include <ronda/layers/onednn/winners.hpp>
#include <ronda/layers/onednn/winograd.hpp>

#include <algorithm>
#include <array>
#include <optional>

namespace ronda::onednn {
namespace {

using dnnl::memory;

/// A way to compute a convolution: how, and in which layout of the activations.
struct Way {
  const char* name;
  dnnl::algorithm algorithm;
  bool plain;             ///< images as NHWC; otherwise as the library likes them
  bool fallback = false;  ///< its slow implementations too
};
constexpr std::array ways{Way{"direct", dnnl::algorithm::convolution_direct, false},
                          Way{"winograd", dnnl::algorithm::convolution_winograd, false},
                          Way{"direct nhwc", dnnl::algorithm::convolution_direct, true}};
constexpr Way last_resort{"fallback", dnnl::algorithm::convolution_direct, false, true};
/// Our own candidates.
constexpr const char *by_winners = "winners", *by_tiles = "winograd tiles";

/// What a convolution's pooling gives, in the layout of what it is given.
TensorDesc pooled(const ConvolutionProblem& spec, const TensorDesc& convolved) {
  return {pool_output(convolved.shape, *spec.pool), convolved.dtype, convolved.layout};
}

/// A convolution's pooling, with its ReLU.
Pooling pooling_of(const ConvolutionProblem& spec, const TensorDesc& convolved) {
  return {*spec.pool, images_of(convolved).value(), pool_output(convolved.shape, *spec.pool),
          spec.activation == Activation::relu};
}

/// A convolution without its ReLU, and how each direction of it is computed.
/// forward: (x, w, b) → y; backward_weights: (x, dz) → dw; backward_data: (dz, w) → dx.
class Directions {
 public:
  Directions(const Runtime& runtime, const ConvolutionProblem& spec, const OperationContext& context)
      : runtime_(runtime),
        spec_(spec),
        output_shape_(convolution_output(spec)),
        window_(spec),
        shared_weight_(context.shared_parameters),
        x_(to_memory_desc(spec.input, Axes::image)),
        bias_(spec.bias ? plain_layout({spec.outputs}, Axes::weight, spec.input.dtype) : memory::desc()) {
    choose_forward(context.picker);
    fused = FusedConvolution::make(runtime, spec, output, weight);
    forward_is_fused = choose_fused(context.picker);
    if (context.mode == Mode::evaluation) return;
    hint_ = describe_forward(last_resort);
    const std::string layouts = spec.input.layout.tag() + " " + output.layout.tag() + " " + weight.layout.tag();
    winners = WinnerGradients::make(runtime, spec, output, weight);
    const std::function<void()> spreading = spreading_rehearsal();
    backward_weights = choose(
        context.picker, "backward weights", layouts, [&](const Way& way) { return make_backward_weights(way); },
        ours(fused     ? fused->weights_rehearsal()
             : winners ? winners->weights_rehearsal()
                       : nullptr,
             tiles ? tiles->weights_rehearsal() : nullptr, spreading),
        spreading);
    if (!context.input_gradient) return;
    const std::function<void()> spreading_again = spreads(backward_weights) ? nullptr : spreading;
    backward_data = choose(
        context.picker, "backward data", layouts, [&](const Way& way) { return make_backward_data(way); },
        ours(winners ? winners->data_rehearsal() : nullptr, tiles ? tiles->data_rehearsal() : nullptr, spreading_again),
        spreading_again);
  }

  /// How a direction is computed. Neither: nobody needs it, or `winners` or `fused` does it.
  struct Direction {
    std::unique_ptr<Computation> library;
    bool in_tiles = false;  ///< by `tiles`
  };
  /// Whether it takes the gradient of the convolution itself, not of its pooled output.
  static bool spreads(const Direction& direction) { return direction.library || direction.in_tiles; }

  Direction forward, backward_weights, backward_data;
  std::unique_ptr<WinnerGradients> winners;
  std::unique_ptr<FusedConvolution> fused;
  std::unique_ptr<Winograd> tiles;
  bool forward_is_fused = false;  ///< `fused` does what `forward` and the pooling would
  TensorDesc output, weight;
  std::string picks;

  [[nodiscard]] std::size_t scratch_bytes() const {
    std::size_t bytes = 0;
    for (const auto* direction : {&forward, &backward_weights, &backward_data})
      if (direction->library)
        bytes = std::max(bytes, direction->library->scratch_bytes());
      else if (direction->in_tiles)
        bytes = std::max(bytes, tiles->scratch_bytes());
    if (winners) bytes = std::max(bytes, winners->scratch_bytes());
    return fused ? std::max(bytes, fused->scratch_bytes()) : bytes;
  }

 private:
  [[nodiscard]] memory::desc image(const Shape& shape, const Way& way) const {
    return way.plain ? plain_layout(shape, Axes::image, dtype()) : any_layout(shape, Axes::image, dtype());
  }
  /// Of the output: plain where parts of it are added up over ranks, which may pick other ways, but have one layout.
  [[nodiscard]] memory::desc output_image(const Way& way) const {
    return is_summed() ? plain_layout(output_shape_, Axes::image, dtype()) : image(output_shape_, way);
  }
  [[nodiscard]] bool is_summed() const { return spec_.sums == SumOverRanks::output; }
  [[nodiscard]] DType dtype() const { return spec_.input.dtype; }
  /// As the library has it: with an axis of its own for the groups, if there are some. The bytes of rows are the same.
  [[nodiscard]] Shape library_weight() const {
    const Shape w = weight_shape(spec_, spec_.input.shape);
    return spec_.groups == 1 ? w : Shape{spec_.groups, w[0] / spec_.groups, w[1], w[2], w[3]};
  }
  [[nodiscard]] memory::desc any_weight() const { return any_layout(library_weight(), Axes::weight, dtype()); }
  /// The forward primitive's choice, or rows where other operations read it too, or where there are groups, whose
  /// blocks no Layout names: then each reorders it.
  [[nodiscard]] memory::desc given_weight(const memory::desc& chosen) const {
    return shared_weight_ || spec_.groups > 1 ? plain_layout(library_weight(), Axes::weight, dtype()) : chosen;
  }
  [[nodiscard]] dnnl::convolution_forward::primitive_desc describe_forward(const Way& way) const {
    return adapter::convolution_forward(runtime_.engine, way.algorithm, window_, image(spec_.input.shape, way),
                                        any_weight(), bias_, output_image(way), Computation::attributes());
  }

  /// Decides the layout of the output, and mostly of the weights, for good.
  void choose_forward(Picker& picker) {
    const Shape weights = weight_shape(spec_, spec_.input.shape);
    const TensorDesc rows{weights, dtype(), {}};
    output = Winograd::output_of(spec_);
    weight = shared_weight_ ? rows : Winograd::weight_of(spec_);
    if (!is_summed()) tiles = Winograd::make(runtime_, spec_, output, weight);
    forward = choose(
        picker, "forward", spec_.input.layout.tag(), [&](const Way& way) { return make_forward(way); },
        ours(nullptr, tiles ? tiles->forward_rehearsal(rectifies()) : nullptr, nullptr, false), rectifying_rehearsal(),
        "");
    if (forward.in_tiles) {
      y_ = to_memory_desc(output, Axes::image);
      w_ = to_memory_desc(weight, Axes::weight);
      return;
    }
    y_ = forward.library->output();
    w_ = forward.library->input(1);
    output = to_tensor_desc(y_, Axes::image).value();
    weight = spec_.groups > 1 ? rows : to_tensor_desc(w_, Axes::weight).value();
    tiles = Winograd::make(runtime_, spec_, output, weight);
  }

  std::unique_ptr<Computation> make_forward(const Way& way) const {
    const auto d = describe_forward(way);
    const auto y = to_tensor_desc(d.dst_desc(), Axes::image);
    if (!way.fallback && is_fallback(d.impl_info_str())) return nullptr;
    const memory::desc given = given_weight(d.weights_desc());
    if (!y || !images_of(*y) || !to_tensor_desc(given, Axes::weight)) return nullptr;
    std::vector<Computation::Argument> inputs{{DNNL_ARG_SRC, x_, d.src_desc()},
                                              {DNNL_ARG_WEIGHTS, given, d.weights_desc()}};
    if (spec_.bias) inputs.push_back({DNNL_ARG_BIAS, bias_, bias_});
    return computation(d, dnnl::convolution_forward(d), std::move(inputs), {DNNL_ARG_DST, d.dst_desc(), d.dst_desc()});
  }

  /// Into the layout of the weights directly where that is no fallback, through a reorder where it is.
  std::unique_ptr<Computation> make_backward_weights(const Way& way) const {
    const memory::desc &w = w_, &dz = y_;
    const auto describe = [&](const memory::desc& dw) {
      return adapter::convolution_backward_weights(runtime_.engine, way.algorithm, window_,
                                                   image(spec_.input.shape, way), dw, image(output_shape_, way), hint_,
                                                   Computation::attributes());
    };
    const auto make = [&](const memory::desc& dw) -> std::unique_ptr<Computation> {
      const auto d = describe(dw);
      if (!way.fallback && is_fallback(d.impl_info_str())) return nullptr;
      return computation(d, dnnl::convolution_backward_weights(d),
                         {{DNNL_ARG_SRC, x_, d.src_desc()}, {DNNL_ARG_DIFF_DST, dz, d.diff_dst_desc()}},
                         {DNNL_ARG_DIFF_WEIGHTS, w, d.diff_weights_desc()});
    };
    auto direct = if_possible([&] { return make(w); });
    return direct ? std::move(direct) : make(any_weight());
  }

  std::unique_ptr<Computation> make_backward_data(const Way& way) const {
    const memory::desc &w = w_, &dz = y_;
    const auto d =
        adapter::convolution_backward_data(runtime_.engine, way.algorithm, window_, image(spec_.input.shape, way),
                                           any_weight(), image(output_shape_, way), hint_, Computation::attributes());
    if (!way.fallback && is_fallback(d.impl_info_str())) return nullptr;
    return computation(d, dnnl::convolution_backward_data(d),
                       {{DNNL_ARG_DIFF_DST, dz, d.diff_dst_desc()}, {DNNL_ARG_WEIGHTS, w, d.weights_desc()}},
                       {DNNL_ARG_DIFF_SRC, x_, d.diff_src_desc()});
  }

  template <class Description>
  std::unique_ptr<Computation> computation(const Description& description, const dnnl::primitive& primitive,
                                           std::vector<Computation::Argument> inputs,
                                           const Computation::Argument& result) const {
    return std::make_unique<Computation>(runtime_, primitive, description.scratchpad_desc(), std::move(inputs), result);
  }

  /// Our own candidates, on every rank, whether they can run here or not.
  /// @param before  what has to be done before tiles
  [[nodiscard]] std::vector<Candidate> ours(std::function<void()> winners_run, std::function<void()> tiles_run,
                                            const std::function<void()>& before, bool backward = true) const {
    std::vector<Candidate> candidates;
    if (backward && behind_maximum()) candidates.push_back({by_winners, std::move(winners_run)});
    if (!Winograd::suits(spec_)) return candidates;
    if (tiles_run && before)
      tiles_run = [before, run = std::move(tiles_run)] {
        before();
        run();
      };
    candidates.push_back({by_tiles, std::move(tiles_run)});
    return candidates;
  }
  [[nodiscard]] bool behind_maximum() const { return spec_.pool && spec_.pool->kind == PoolKind::maximum; }

  /// Of few input channels: whether convolution and pooling are one.
  bool choose_fused(Picker& picker) {
    if (!behind_maximum() || spec_.input.shape[3] > FusedConvolution::most_channels) return false;
    const std::string question =
        "convolution and pooling " + text() + " " + output.layout.tag() + " " + weight.layout.tag();
    const std::array candidates{Candidate{"apart", apart_rehearsal()},
                                Candidate{"fused", fused ? fused->forward_rehearsal() : nullptr}};
    const bool chosen = picker.pick(question, candidates) == 1;
    if (chosen) picks = "forward fused";
    return chosen;
  }

  /// A pooling on memory of its own.
  struct PoolingRehearsal {
    PoolingRehearsal(const ConvolutionProblem& spec, const TensorDesc& convolved, int threads)
        : dtype(convolved.dtype),
          pooling(pooling_of(spec, convolved)),
          input(Buffer::host(convolved.bytes())),
          output(Buffer::host(pooled(spec, convolved).bytes())),
          winners(Buffer::host(pooling.winner_bytes())),
          scratch(Buffer::host(pooling.scratch_bytes(dtype, threads))) {}
    void forward(int threads) const {
      with_layer_number(dtype, [&]<class T>(std::type_identity<T>) {
        pooling.forward<T>(data<T>(input), data<T>(output), winners.data(), threads);
      });
    }
    void backward(int threads) const {
      with_layer_number(dtype, [&]<class T>(std::type_identity<T>) {
        pooling.backward<T>(data<T>(output), winners.data(), data<T>(input), scratch.data(), threads);
      });
    }

    DType dtype;
    Pooling pooling;
    Buffer input, output, winners, scratch;
  };

  [[nodiscard]] std::function<void()> apart_rehearsal() const {
    struct Apart {
      PoolingRehearsal pooling;
      Buffer computation;
    };
    return rehearsal(
        [this] {
          return std::make_shared<Apart>(Apart{PoolingRehearsal(spec_, output, runtime_.threads),
                                               Buffer::host(forward.library ? forward.library->rehearsal_bytes() : 0)});
        },
        [this, run_tiles = tiles ? tiles->forward_rehearsal(false) : nullptr](const Apart& apart) {
          if (forward.library)
            forward.library->rehearse(apart.computation.data());
          else
            run_tiles();
          apart.pooling.forward(runtime_.threads);
        });
  }

  /// Of gradients over the windows that they belong to, which the library's ways need done.
  [[nodiscard]] std::function<void()> spreading_rehearsal() const {
    if (!behind_maximum()) return nullptr;
    return rehearsal([this] { return std::make_shared<PoolingRehearsal>(spec_, output, runtime_.threads); },
                     [this](const PoolingRehearsal& pooling) { pooling.backward(runtime_.threads); });
  }

  /// Of the ReLU of a convolution that tiles can compute, which do it themselves.
  [[nodiscard]] std::function<void()> rectifying_rehearsal() const {
    if (!rectifies() || !tiles) return nullptr;
    return rehearsal([this] { return std::make_shared<Buffer>(Buffer::host(output.bytes())); },
                     [this](const Buffer& y) { rectify(data<float>(y), y.bytes() / sizeof(float), runtime_.threads); });
  }
  [[nodiscard]] bool rectifies() const { return !spec_.pool && spec_.activation == Activation::relu; }

  /// The picker's choice among the ways; the last resort only counts where there is no other.
  /// @param before  as `pick` has it
  /// @param told    of it, in the question
  template <class Make>
  Direction choose(Picker& picker, const char* direction, const std::string& layouts, Make&& make,
                   std::span<const Candidate> ours, const std::function<void()>& before,
                   const char* told = " with spreading") {
    std::vector<Option> options;
    bool any = false;
    for (const Way& way : ways) {
      options.push_back({way.name, if_possible([&] { return make(way); })});
      any = any || options.back().computation;
    }
    options.push_back({last_resort.name, any ? nullptr : make(last_resort)});
    const std::string question =
        std::string("convolution ") + direction + " " + text() + " " + layouts + (before ? told : "");
    Option chosen = pick(picker, question, std::move(options), ours, before);
    picks += (picks.empty() ? "" : ", ") + std::string(direction) + " " + chosen.name;
    return {std::move(chosen.computation), chosen.name == by_tiles};
  }

  [[nodiscard]] std::string text() const {
    return spec_.input.shape.text() + " to " + std::to_string(spec_.outputs) + " " + text_of_windows(spec_) +
           (spec_.bias ? "" : " without bias") + (spec_.activation == Activation::relu ? " with relu" : "") +
           pooling() + (shared_weight_ ? " weights in rows" : "") + (is_summed() ? " summed" : "") +
           text_of_type(dtype());
  }

  /// Part of the question, since it decides which ways there are.
  [[nodiscard]] std::string pooling() const {
    if (!spec_.pool) return "";
    return std::string(spec_.pool->kind == PoolKind::maximum ? " maximum" : " average") + " of " +
           spec_.pool->kernel.text() + " stride " + spec_.pool->stride.text() + " padding " +
           spec_.pool->padding.text();
  }

  const Runtime& runtime_;
  const ConvolutionProblem& spec_;
  Shape output_shape_;
  adapter::Window window_;
  bool shared_weight_;
  memory::desc x_, w_, bias_, y_;  ///< as the caller's bytes lie
  dnnl::convolution_forward::primitive_desc hint_;
};

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
      directions_.backward_weights.library->run({input.data(), gradients.convolved}, weight.gradient.data(), scratch);
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
    return Directions::spreads(directions_.backward_weights) || Directions::spreads(directions_.backward_data);
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
  Directions directions_;
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
