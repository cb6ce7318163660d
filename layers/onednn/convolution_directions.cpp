#include <ronda/core/buffer.hpp>
#include <ronda/layers/onednn/convolution_directions.hpp>
#include <ronda/layers/onednn/images.hpp>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace ronda::onednn {

/// A way to compute a convolution: how, and in which layout of the activations.
struct ConvolutionWay {
  const char* name;
  dnnl::algorithm algorithm;
  bool plain;             ///< images as NHWC; otherwise as the library likes them
  bool fallback = false;  ///< its slow implementations too
};

namespace {

constexpr std::array ways{ConvolutionWay{"direct", dnnl::algorithm::convolution_direct, false},
                          ConvolutionWay{"winograd", dnnl::algorithm::convolution_winograd, false},
                          ConvolutionWay{"direct nhwc", dnnl::algorithm::convolution_direct, true}};
/// A forward pass that leaves the library's layout must be so much faster: in NHWC the convolutions that follow are
/// slower too, or reorder what they read, and so are normalisations of many channels.
constexpr double plain_counts = 1.1;
constexpr ConvolutionWay last_resort{"fallback", dnnl::algorithm::convolution_direct, false, true};
/// Our own candidates.
constexpr const char *by_winners = "winners", *by_tiles = "winograd tiles";

/// Whether channels lie in blocks.
bool is_in_blocks(const dnnl::memory::desc& image) {
  const auto desc = to_tensor_desc(image, Axes::image);
  return desc && desc->layout.tag().find_first_of("0123456789") != std::string::npos;
}

/// oneDNN 2.6 computes wrong gradients of such a weight, or runs on for ever, with AVX2: of points with strides, where
/// channels lie in no blocks and a pixel's channels are fewer than a vector holds.
bool is_broken(const dnnl::convolution_backward_weights::primitive_desc& description, const ConvolutionProblem& spec) {
  constexpr std::int64_t most_numbers = 16;
  return std::string_view(description.impl_info_str()).find("1x1") != std::string_view::npos &&
         spec.input.shape[3] < most_numbers && (spec.stride.height > 1 || spec.stride.width > 1) &&
         !is_in_blocks(description.src_desc());
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

}  // namespace

TensorDesc pooled(const ConvolutionProblem& spec, const TensorDesc& convolved) {
  return {pool_output(convolved.shape, *spec.pool), convolved.dtype, convolved.layout};
}

Pooling pooling_of(const ConvolutionProblem& spec, const TensorDesc& convolved) {
  return {*spec.pool, images_of(convolved).value(), pool_output(convolved.shape, *spec.pool),
          spec.activation == Activation::relu};
}

ConvolutionDirections::ConvolutionDirections(const Runtime& runtime, const ConvolutionProblem& spec,
                                             const OperationContext& context)
    : runtime_(runtime),
      spec_(spec),
      output_shape_(convolution_output(spec)),
      window_(spec),
      shared_weight_(context.shared_parameters),
      x_(to_memory_desc(spec.input, Axes::image)),
      bias_(spec.bias ? plain_layout({spec.outputs}, Axes::weight, spec.input.dtype) : dnnl::memory::desc()) {
  choose_forward(context.picker);
  fused = FusedConvolution::make(runtime, spec, output, weight);
  forward_is_fused = choose_fused(context.picker);
  if (context.mode == Mode::evaluation) return;
  hint_ = describe_forward(last_resort);
  const std::string layouts = spec.input.layout.tag() + " " + output.layout.tag() + " " + weight.layout.tag();
  winners = WinnerGradients::make(runtime, spec, output, weight);
  const std::function<void()> spreading = spreading_rehearsal();
  backward_weights = choose(
      context.picker, "backward weights", layouts,
      [&](const ConvolutionWay& way) { return make_backward_weights(way); },
      ours(fused     ? fused->weights_rehearsal()
           : winners ? winners->weights_rehearsal()
                     : nullptr,
           tiles ? tiles->weights_rehearsal() : nullptr, spreading),
      spreading);
  if (!context.input_gradient) return;
  const std::function<void()> spreading_again = spreads(backward_weights) ? nullptr : spreading;
  backward_data = choose(
      context.picker, "backward data", layouts, [&](const ConvolutionWay& way) { return make_backward_data(way); },
      ours(winners ? winners->data_rehearsal() : nullptr, tiles ? tiles->data_rehearsal() : nullptr, spreading_again),
      spreading_again);
}

std::size_t ConvolutionDirections::scratch_bytes() const {
  std::size_t bytes = 0;
  for (const auto* direction : {&forward, &backward_weights, &backward_data})
    if (direction->library)
      bytes = std::max(bytes, direction->library->scratch_bytes());
    else if (direction->in_tiles)
      bytes = std::max(bytes, tiles->scratch_bytes());
  if (winners) bytes = std::max(bytes, winners->scratch_bytes());
  return fused ? std::max(bytes, fused->scratch_bytes()) : bytes;
}

dnnl::memory::desc ConvolutionDirections::image(const Shape& shape, const ConvolutionWay& way) const {
  return way.plain ? plain_layout(shape, Axes::image, dtype()) : any_layout(shape, Axes::image, dtype());
}

dnnl::memory::desc ConvolutionDirections::output_image(const ConvolutionWay& way) const {
  return is_summed() ? plain_layout(output_shape_, Axes::image, dtype()) : image(output_shape_, way);
}

Shape ConvolutionDirections::library_weight() const {
  const Shape w = weight_shape(spec_, spec_.input.shape);
  return spec_.groups == 1 ? w : Shape{spec_.groups, w[0] / spec_.groups, w[1], w[2], w[3]};
}

dnnl::memory::desc ConvolutionDirections::given_weight(const dnnl::memory::desc& chosen) const {
  return shared_weight_ || spec_.groups > 1 ? plain_layout(library_weight(), Axes::weight, dtype()) : chosen;
}

dnnl::convolution_forward::primitive_desc ConvolutionDirections::describe_forward(const ConvolutionWay& way) const {
  return adapter::convolution_forward(runtime_.engine, way.algorithm, window_, image(spec_.input.shape, way),
                                      any_weight(), bias_, output_image(way), Computation::attributes());
}

void ConvolutionDirections::choose_forward(Picker& picker) {
  const Shape weights = weight_shape(spec_, spec_.input.shape);
  const TensorDesc rows{weights, dtype(), {}};
  output = Winograd::output_of(spec_);
  weight = shared_weight_ ? rows : Winograd::weight_of(spec_);
  if (!is_summed()) tiles = Winograd::make(runtime_, spec_, output, weight);
  const bool relu = spec_.activation == Activation::relu && (!spec_.pool || (tiles && tiles->pools()));
  forward = choose(
      picker, "forward", spec_.input.layout.tag(), [&](const ConvolutionWay& way) { return make_forward(way); },
      ours(nullptr, tiles ? tiles->forward_rehearsal(relu) : nullptr, nullptr, false), finishing_rehearsal(), "",
      is_summed() ? 1 : plain_counts);
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

std::unique_ptr<Computation> ConvolutionDirections::make_forward(const ConvolutionWay& way) const {
  const auto d = describe_forward(way);
  const auto y = to_tensor_desc(d.dst_desc(), Axes::image);
  if (!way.fallback && is_fallback(d.impl_info_str())) return nullptr;
  const dnnl::memory::desc given = given_weight(d.weights_desc());
  if (!y || !images_of(*y) || !to_tensor_desc(given, Axes::weight)) return nullptr;
  std::vector<Computation::Argument> inputs{{DNNL_ARG_SRC, x_, d.src_desc()},
                                            {DNNL_ARG_WEIGHTS, given, d.weights_desc()}};
  if (spec_.bias) inputs.push_back({DNNL_ARG_BIAS, bias_, bias_});
  return computation(d, dnnl::convolution_forward(d), std::move(inputs), {DNNL_ARG_DST, d.dst_desc(), d.dst_desc()});
}

std::unique_ptr<Computation> ConvolutionDirections::make_backward_weights(const ConvolutionWay& way) const {
  const dnnl::memory::desc &w = w_, &dz = y_;
  const auto describe = [&](const dnnl::memory::desc& dw) {
    return adapter::convolution_backward_weights(runtime_.engine, way.algorithm, window_, image(spec_.input.shape, way),
                                                 dw, image(output_shape_, way), hint_, Computation::attributes());
  };
  const auto make = [&](const dnnl::memory::desc& dw) -> std::unique_ptr<Computation> {
    const auto d = describe(dw);
    if ((!way.fallback && is_fallback(d.impl_info_str())) || is_broken(d, spec_)) return nullptr;
    return computation(d, dnnl::convolution_backward_weights(d),
                       {{DNNL_ARG_SRC, x_, d.src_desc()}, {DNNL_ARG_DIFF_DST, dz, d.diff_dst_desc()}},
                       {DNNL_ARG_DIFF_WEIGHTS, w, d.diff_weights_desc()});
  };
  auto direct = if_possible([&] { return make(w); });
  return direct ? std::move(direct) : make(any_weight());
}

std::unique_ptr<Computation> ConvolutionDirections::make_backward_data(const ConvolutionWay& way) const {
  const dnnl::memory::desc &w = w_, &dz = y_;
  const auto d =
      adapter::convolution_backward_data(runtime_.engine, way.algorithm, window_, image(spec_.input.shape, way),
                                         any_weight(), image(output_shape_, way), hint_, Computation::attributes());
  if (!way.fallback && is_fallback(d.impl_info_str())) return nullptr;
  return computation(d, dnnl::convolution_backward_data(d),
                     {{DNNL_ARG_DIFF_DST, dz, d.diff_dst_desc()}, {DNNL_ARG_WEIGHTS, w, d.weights_desc()}},
                     {DNNL_ARG_DIFF_SRC, x_, d.diff_src_desc()});
}

template <class Description>
std::unique_ptr<Computation> ConvolutionDirections::computation(const Description& description,
                                                                const dnnl::primitive& primitive,
                                                                std::vector<Computation::Argument> inputs,
                                                                const Computation::Argument& result) const {
  return std::make_unique<Computation>(runtime_, primitive, description.scratchpad_desc(), std::move(inputs), result);
}

std::vector<Candidate> ConvolutionDirections::ours(std::function<void()> winners_run, std::function<void()> tiles_run,
                                                   const std::function<void()>& before, bool backward) const {
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

bool ConvolutionDirections::choose_fused(Picker& picker) {
  if (!behind_maximum() || spec_.input.shape[3] > FusedConvolution::most_channels) return false;
  const std::string question =
      "convolution and pooling " + text() + " " + output.layout.tag() + " " + weight.layout.tag();
  const std::array candidates{Candidate{"apart", apart_rehearsal()},
                              Candidate{"fused", fused ? fused->forward_rehearsal() : nullptr}};
  const bool chosen = picker.pick(question, candidates) == 1;
  if (chosen) picks = "forward fused";
  return chosen;
}

std::function<void()> ConvolutionDirections::apart_rehearsal() const {
  struct Apart {
    PoolingRehearsal pooling;
    Buffer computation;
  };
  return rehearsal(
      [this] {
        return std::make_shared<Apart>(
            Apart{PoolingRehearsal(spec_, output, runtime_.threads), Buffer::host(forward.library->rehearsal_bytes())});
      },
      [this](const Apart& apart) {
        forward.library->rehearse(apart.computation.data());  // tiles take more channels than `choose_fused` looks at
        apart.pooling.forward(runtime_.threads);
      });
}

std::function<void()> ConvolutionDirections::spreading_rehearsal() const {
  if (!behind_maximum()) return nullptr;
  return rehearsal([this] { return std::make_shared<PoolingRehearsal>(spec_, output, runtime_.threads); },
                   [this](const PoolingRehearsal& pooling) { pooling.backward(runtime_.threads); });
}

std::function<void()> ConvolutionDirections::finishing_rehearsal() const {
  if (!tiles) return nullptr;
  if (tiles->pools())
    return rehearsal([this] { return std::make_shared<PoolingRehearsal>(spec_, output, runtime_.threads); },
                     [this](const PoolingRehearsal& pooling) { pooling.forward(runtime_.threads); });
  if (spec_.pool || spec_.activation != Activation::relu) return nullptr;
  return rehearsal([this] { return std::make_shared<Buffer>(Buffer::host(output.bytes())); },
                   [this](const Buffer& y) { rectify(data<float>(y), y.bytes() / sizeof(float), runtime_.threads); });
}

template <class Make>
ConvolutionDirections::Direction ConvolutionDirections::choose(Picker& picker, const char* direction,
                                                               const std::string& layouts, Make&& make,
                                                               std::span<const Candidate> ours,
                                                               const std::function<void()>& before, const char* told,
                                                               double plain) {
  std::vector<Option> options;
  bool any = false;
  for (const ConvolutionWay& way : ways) {
    options.push_back({way.name, if_possible([&] { return make(way); }), way.plain ? plain : 1});
    any = any || options.back().computation;
  }
  options.push_back({last_resort.name, any ? nullptr : make(last_resort)});
  const std::string question =
      std::string("convolution ") + direction + " " + text() + " " + layouts + (before ? told : "");
  Option chosen = pick(picker, question, std::move(options), ours, before);
  picks += (picks.empty() ? "" : ", ") + std::string(direction) + " " + chosen.name;
  return {std::move(chosen.computation), chosen.name == by_tiles};
}

std::string ConvolutionDirections::text() const {
  return spec_.input.shape.text() + " to " + std::to_string(spec_.outputs) + " " + text_of_windows(spec_) +
         (spec_.bias ? "" : " without bias") + (spec_.activation == Activation::relu ? " with relu" : "") + pooling() +
         (shared_weight_ ? " weights in rows" : "") + (is_summed() ? " summed" : "") + text_of_type(dtype());
}

std::string ConvolutionDirections::pooling() const {
  if (!spec_.pool) return "";
  return std::string(spec_.pool->kind == PoolKind::maximum ? " maximum" : " average") + " of " +
         spec_.pool->kernel.text() + " stride " + spec_.pool->stride.text() + " padding " + spec_.pool->padding.text();
}

}  // namespace ronda::onednn
