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

/// Whether an output with all its inputs 0 has roundings of its tile's other inputs. So the library's Winograd computes
/// only gradients of weights.
bool leaves_roundings(const ConvolutionWay& way) { return way.algorithm == dnnl::algorithm::convolution_winograd; }

/// Whether every element of a kernel of stride 1 meets an input, not only padding, where its gradient is 0.
bool every_tap_meets_inputs(const ConvolutionProblem& spec) {
  const Shape in = spec.input.shape, out = convolution_output(spec);
  return out[1] > spec.padding.height && spec.kernel.height - 1 - spec.padding.height < in[1] &&
         out[2] > spec.padding.width && spec.kernel.width - 1 - spec.padding.width < in[2];
}

/// A rectangle of pixels.
struct Pixels {
  std::int64_t top, left, height, width;
};

/// Copies some pixels of a sample's images, and zeros for pixels outside.
void copy_pixels(const Images& images, const float* sample, const Pixels& pixels, float* to) {
  const std::int64_t begin = std::clamp<std::int64_t>(-pixels.left, 0, pixels.width),
                     end = std::clamp<std::int64_t>(images.width - pixels.left, begin, pixels.width);
  for (std::int64_t group = 0; group < images.groups; ++group, sample += images.image_size())
    for (std::int64_t row = pixels.top; row < pixels.top + pixels.height; ++row, to += pixels.width * images.lanes) {
      if (row < 0 || row >= images.height || begin == end) {
        std::fill_n(to, pixels.width * images.lanes, 0.0F);
        continue;
      }
      const float* const from = sample + (row * images.width + pixels.left + begin) * images.lanes;
      float* const copied = std::fill_n(to, begin * images.lanes, 0.0F);
      std::fill(std::copy_n(from, (end - begin) * images.lanes, copied), to + pixels.width * images.lanes, 0.0F);
    }
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
  const std::string layouts = spec.input.layout.tag() + " " + output.layout.tag() + " " + weight.layout.tag();
  winners = WinnerGradients::make(runtime, spec, output, weight);
  const std::function<void()> spreading = spreading_rehearsal();
  choose_backward_weights(context.picker, layouts, spreading);
  if (!context.input_gradient) return;
  const std::function<void()> spreading_again = spreads(backward_weights) ? nullptr : spreading;
  backward_data = choose(
      context.picker, "backward data", layouts, [&](const ConvolutionWay& way) { return make_backward_data(way); },
      ours(winners ? winners->data_rehearsal() : nullptr, tiles ? tiles->data_rehearsal() : nullptr, spreading_again),
      spreading_again);
}

ConvolutionDirections::Part ConvolutionDirections::part_of_samples(std::int64_t samples) const {
  const auto part = [samples](const Shape& shape) { return Shape{samples, shape[1], shape[2], shape[3]}; };
  return {part(spec_.input.shape), part(output_shape_), window_};
}

/// A part without padding of its own: its inputs contain the padding.
ConvolutionDirections::Part ConvolutionDirections::part_of_pixels() const {
  const auto inputs = [](std::int64_t outputs, std::int64_t kernel, std::int64_t stride, std::int64_t dilation) {
    return (outputs - 1) * stride + (kernel - 1) * dilation + 1;
  };
  const auto part = [](const Shape& shape, std::int64_t h, std::int64_t w) { return Shape{1, h, w, shape[3]}; };
  Part result{part(spec_.input.shape,
                   inputs(pixels_of_part_.height, spec_.kernel.height, spec_.stride.height, spec_.dilation.height),
                   inputs(pixels_of_part_.width, spec_.kernel.width, spec_.stride.width, spec_.dilation.width)),
              part(output_shape_, pixels_of_part_.height, pixels_of_part_.width), window_};
  std::ranges::fill(result.window.before, 0);
  std::ranges::fill(result.window.after, 0);
  return result;
}

/// The library adds up all positions of all samples in one float32 sum for each weight. So float32 is computed in
/// parts: some samples, or copies of some pixels of a large image.
void ConvolutionDirections::choose_backward_weights(Picker& picker, const std::string& layouts,
                                                    const std::function<void()>& spreading) {
  const std::int64_t samples = spec_.input.shape[0], positions = output_shape_[1] * output_shape_[2];
  constexpr std::int64_t large = 4096, positions_of_part = 512;
  if (dtype() == DType::float32 && positions > large && images_of(spec_.input)) {
    pixels_of_part_.width = std::min(output_shape_[2], positions_of_part);
    pixels_of_part_.height = positions_of_part / pixels_of_part_.width;
    parts_of_sum_ = {samples * parts_down() * parts_across(), 1};
  } else {
    parts_of_sum_ =
        dtype() == DType::float32 ? SumParts::of(samples, positions, weight.shape.count()) : SumParts::whole(samples);
  }
  const std::string parts = is_cut()                    ? " by " + pixels_of_part_.text() + " pixels"
                            : parts_of_sum_.count() > 1 ? " by " + std::to_string(parts_of_sum_.most) + " samples"
                                                        : "";
  const Part part = is_cut() ? part_of_pixels() : part_of_samples(parts_of_sum_.most);
  inputs_of_part_ = {part.in[1], part.in[2]};
  backward_weights = choose(
      picker, "backward weights", layouts + parts,
      [&](const ConvolutionWay& way) { return make_backward_weights(way, part); },
      ours(fused     ? fused->weights_rehearsal()
           : winners ? winners->weights_rehearsal()
                     : nullptr,
           tiles ? tiles->weights_rehearsal() : nullptr, spreading),
      spreading, " with spreading", 1, parts_of_sum_.count());
  if (!backward_weights.library || parts_of_sum_.rest() == 0) return;
  for (const ConvolutionWay* way : {backward_weights.way, &last_resort})
    if (!rest_of_sum_)
      rest_of_sum_ = if_possible([&] { return make_backward_weights(*way, part_of_samples(parts_of_sum_.rest())); });
}

void ConvolutionDirections::write_weight_gradient(const std::byte* x, const std::byte* dz, std::byte* dw,
                                                  std::byte* scratch) const {
  Computation& of_part = *backward_weights.library;
  if (parts_of_sum_.count() == 1 && !is_cut()) return of_part.run({x, dz}, dw, scratch);
  const auto samples = static_cast<std::size_t>(spec_.input.shape[0]);
  const std::size_t x_step = spec_.input.bytes() / samples, dz_step = output.bytes() / samples;
  const std::size_t gradient_bytes = weight.bytes();
  std::byte* const of_run = scratch + parts_of_sum_.scratch_bytes(gradient_bytes);
  sum_by_pairs({0, parts_of_sum_.count()}, reinterpret_cast<float*>(dw), gradient_bytes / sizeof(float),
               reinterpret_cast<float*>(scratch), runtime_.threads, [&](std::size_t part, float* to) {
                 if (is_cut())
                   return run_pixels(static_cast<std::int64_t>(part), reinterpret_cast<const float*>(x),
                                     reinterpret_cast<const float*>(dz), to, of_run);
                 const auto first = static_cast<std::size_t>(parts_of_sum_.first(part));
                 Computation& run = parts_of_sum_.size(part) < parts_of_sum_.most ? *rest_of_sum_ : of_part;
                 run.run({x + first * x_step, dz + first * dz_step}, to, of_run);
               });
}

/// The gradient of some pixels of a sample, which are copied because they are not contiguous.
void ConvolutionDirections::run_pixels(std::int64_t part, const float* x, const float* dz, float* dw,
                                       std::byte* scratch) const {
  const Images in = images_of(spec_.input).value(), out = images_of(output).value();
  const std::int64_t sample = part / (parts_down() * parts_across()),
                     row = part / parts_across() % parts_down() * pixels_of_part_.height,
                     column = part % parts_across() * pixels_of_part_.width;
  auto* const copied_x = reinterpret_cast<float*>(scratch);
  float* const copied_dz = copied_x + in.groups * inputs_of_part_.area() * in.lanes;
  copy_pixels(in, x + sample * in.groups * in.image_size(),
              {row * spec_.stride.height - spec_.padding.height, column * spec_.stride.width - spec_.padding.width,
               inputs_of_part_.height, inputs_of_part_.width},
              copied_x);
  copy_pixels(out, dz + sample * out.groups * out.image_size(),
              {row, column, pixels_of_part_.height, pixels_of_part_.width}, copied_dz);
  backward_weights.library->run({copied_x, copied_dz}, dw, scratch + copied_bytes());
}

std::size_t ConvolutionDirections::copied_bytes() const {
  if (!is_cut()) return 0;
  const Images in = images_of(spec_.input).value(), out = images_of(output).value();
  const std::int64_t floats =
      in.groups * inputs_of_part_.area() * in.lanes + out.groups * pixels_of_part_.area() * out.lanes;
  return (static_cast<std::size_t>(floats) * sizeof(float) + Buffer::alignment - 1) / Buffer::alignment *
         Buffer::alignment;
}

std::size_t ConvolutionDirections::scratch_bytes() const {
  std::size_t bytes = 0;
  if (backward_weights.library) {
    bytes = backward_weights.library->scratch_bytes();
    if (rest_of_sum_) bytes = std::max(bytes, rest_of_sum_->scratch_bytes());
    bytes += parts_of_sum_.scratch_bytes(weight.bytes()) + copied_bytes();
  }
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

dnnl::memory::desc ConvolutionDirections::output_image(const ConvolutionWay& way, const Shape& shape) const {
  return is_summed() ? plain_layout(shape, Axes::image, dtype()) : image(shape, way);
}

Shape ConvolutionDirections::library_weight() const {
  const Shape w = weight_shape(spec_, spec_.input.shape);
  return spec_.groups == 1 ? w : Shape{spec_.groups, w[0] / spec_.groups, w[1], w[2], w[3]};
}

dnnl::memory::desc ConvolutionDirections::given_weight(const dnnl::memory::desc& chosen) const {
  return shared_weight_ || spec_.groups > 1 ? plain_layout(library_weight(), Axes::weight, dtype()) : chosen;
}

dnnl::convolution_forward::primitive_desc ConvolutionDirections::describe_forward(const ConvolutionWay& way,
                                                                                  const Part& part) const {
  return adapter::convolution_forward(runtime_.engine, way.algorithm, part.window, image(part.in, way), any_weight(),
                                      bias_, output_image(way, part.out), Computation::attributes());
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
  if (leaves_roundings(way)) return nullptr;
  const auto d = describe_forward(way, whole());
  const auto y = to_tensor_desc(d.dst_desc(), Axes::image);
  if (!way.fallback && is_fallback(d.impl_info_str())) return nullptr;
  const dnnl::memory::desc given = given_weight(d.weights_desc());
  if (!y || !images_of(*y) || !to_tensor_desc(given, Axes::weight)) return nullptr;
  std::vector<Computation::Argument> inputs{{DNNL_ARG_SRC, x_, d.src_desc()},
                                            {DNNL_ARG_WEIGHTS, given, d.weights_desc()}};
  if (spec_.bias) inputs.push_back({DNNL_ARG_BIAS, bias_, bias_});
  return computation(d, dnnl::convolution_forward(d), std::move(inputs), {DNNL_ARG_DST, d.dst_desc(), d.dst_desc()});
}

std::unique_ptr<Computation> ConvolutionDirections::make_backward_weights(const ConvolutionWay& way,
                                                                          const Part& part) const {
  if (leaves_roundings(way) && !every_tap_meets_inputs(spec_)) return nullptr;
  const dnnl::memory::desc &w = w_, x = to_memory_desc({part.in, dtype(), spec_.input.layout}, Axes::image),
                           dz = to_memory_desc({part.out, dtype(), output.layout}, Axes::image);
  const auto hint = describe_forward(last_resort, part);
  const auto describe = [&](const dnnl::memory::desc& dw) {
    return adapter::convolution_backward_weights(runtime_.engine, way.algorithm, part.window, image(part.in, way), dw,
                                                 image(part.out, way), hint, Computation::attributes());
  };
  const auto make = [&](const dnnl::memory::desc& dw) -> std::unique_ptr<Computation> {
    const auto d = describe(dw);
    if ((!way.fallback && is_fallback(d.impl_info_str())) || is_broken(d, spec_)) return nullptr;
    return computation(d, dnnl::convolution_backward_weights(d),
                       {{DNNL_ARG_SRC, x, d.src_desc()}, {DNNL_ARG_DIFF_DST, dz, d.diff_dst_desc()}},
                       {DNNL_ARG_DIFF_WEIGHTS, w, d.diff_weights_desc()});
  };
  auto direct = if_possible([&] { return make(w); });
  return direct ? std::move(direct) : make(any_weight());
}

std::unique_ptr<Computation> ConvolutionDirections::make_backward_data(const ConvolutionWay& way) const {
  if (leaves_roundings(way)) return nullptr;
  const dnnl::memory::desc &w = w_, &dz = y_;
  const auto d = adapter::convolution_backward_data(
      runtime_.engine, way.algorithm, window_, image(spec_.input.shape, way), any_weight(), image(output_shape_, way),
      describe_forward(last_resort, whole()), Computation::attributes());
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
                                                               double plain, std::size_t times) {
  std::vector<Option> options;
  bool any = false;
  for (const ConvolutionWay& way : ways) {
    options.push_back({way.name, if_possible([&] { return make(way); }), way.plain ? plain : 1, times});
    any = any || options.back().computation;
  }
  options.push_back({last_resort.name, any ? nullptr : make(last_resort), 1, times});
  const std::string question =
      std::string("convolution ") + direction + " " + text() + " " + layouts + (before ? told : "");
  Option chosen = pick(picker, question, std::move(options), ours, before);
  picks += (picks.empty() ? "" : ", ") + std::string(direction) + " " + chosen.name;
  const auto way = std::ranges::find(ways, chosen.name, &ConvolutionWay::name);
  return {std::move(chosen.computation), chosen.name == by_tiles, way == ways.end() ? &last_resort : &*way};
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
