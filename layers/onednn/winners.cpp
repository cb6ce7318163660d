#include <ronda/core/buffer.hpp>
#include <ronda/core/multiversion.hpp>
#include <ronda/layers/onednn/memory_desc.hpp>
#include <ronda/layers/onednn/pooling.hpp>
#include <ronda/layers/onednn/sums.hpp>
#include <ronda/layers/onednn/winners.hpp>

#include <algorithm>

namespace ronda::onednn {
namespace {

using Winner = WinnerGradients::Winner;

/// A kernel × kernel grid of vectors in memory: strides in elements.
struct Grid {
  std::int64_t row, column;
};

/// sums[kh, kw] += gradient · operand[offset + kh, kw] for every winner of a list. The list's sums stay in registers.
template <int kernel, LayerNumber T>
[[gnu::always_inline]] inline void accumulate(const Winner* __restrict list, std::size_t count,
                                              const T* __restrict operand, Grid from, float* __restrict sums, Grid to) {
  float sum[kernel][kernel][vector] = {};
  for (std::size_t i = 0; i < count; ++i) {
    const float gradient = list[i].gradient;
    const T* start = operand + list[i].offset;
    for (int kh = 0; kh < kernel; ++kh)
      for (int kw = 0; kw < kernel; ++kw)
        for (int l = 0; l < vector; ++l)
          sum[kh][kw][l] =
              __builtin_fmaf(gradient, as_float(start[kh * from.row + kw * from.column + l]), sum[kh][kw][l]);
  }
  for (int kh = 0; kh < kernel; ++kh)
    for (int kw = 0; kw < kernel; ++kw)
      for (int l = 0; l < vector; ++l) sums[kh * to.row + kw * to.column + l] += sum[kh][kw][l];
}
RONDA_MULTIVERSION void accumulate_3(const Winner* list, std::size_t count, const float* operand, Grid from,
                                     float* sums, Grid to) {
  accumulate<3>(list, count, operand, from, sums, to);
}
RONDA_MULTIVERSION void accumulate_5(const Winner* list, std::size_t count, const float* operand, Grid from,
                                     float* sums, Grid to) {
  accumulate<5>(list, count, operand, from, sums, to);
}
RONDA_MULTIVERSION void accumulate_3(const Winner* list, std::size_t count, const BFloat16* operand, Grid from,
                                     float* sums, Grid to) {
  accumulate<3>(list, count, operand, from, sums, to);
}
RONDA_MULTIVERSION void accumulate_5(const Winner* list, std::size_t count, const BFloat16* operand, Grid from,
                                     float* sums, Grid to) {
  accumulate<5>(list, count, operand, from, sums, to);
}

template <LayerNumber T>
using Accumulate = void(const Winner*, std::size_t, const T*, Grid, float*, Grid);
template <LayerNumber T>
Accumulate<T>* accumulate_of(std::int64_t kernel) {
  return kernel == 3 ? static_cast<Accumulate<T>*>(accumulate_3) : static_cast<Accumulate<T>*>(accumulate_5);
}

/// The loops of winner_kernels.hpp that can compute a convolution, in float32; null where none can.
const winner_loops::Loops* loops_for(const ConvolutionProblem& spec, const Images& input, const Images& output) {
  const winner_loops::Loops* const loops = winner_loops::loops_here();
  if (loops == nullptr || spec.kernel != 3 || spec.outputs % loops->lanes != 0) return nullptr;
  return input.lanes % loops->lanes == 0 && output.lanes % loops->lanes == 0 ? loops : nullptr;
}

TensorDesc inputs_by_sixteens(const TensorDesc& weight) {
  return {weight.shape, DType::float32, Layout::parse("abcd16b")};
}

}  // namespace

std::unique_ptr<WinnerGradients> WinnerGradients::make(const Runtime& runtime, const ConvolutionProblem& spec,
                                                       const TensorDesc& convolved, const TensorDesc& weight) {
  if (!spec.pool || spec.pool->kind != PoolKind::maximum || spec.pool->kernel.area() > 256) return nullptr;
  if (!spec.is_usual() || (spec.kernel != 3 && spec.kernel != 5) || spec.padding != 0) return nullptr;
  const auto input = images_of(spec.input), output = images_of(convolved);
  if (!input || !output) return nullptr;
  const bool by_vectors = spec.input.dtype == DType::float32 && spec.input.shape[3] % vector == 0 &&
                          loops_for(spec, *input, *output) != nullptr;
  if (input->lanes % vector != 0 && !by_vectors) return nullptr;
  return std::unique_ptr<WinnerGradients>(new WinnerGradients(runtime, spec, *input, *output, weight));
}

WinnerGradients::WinnerGradients(const Runtime& runtime, const ConvolutionProblem& spec, const Images& input,
                                 const Images& convolved, const TensorDesc& weight)
    : threads_(runtime.threads),
      spec_(spec),
      loops_(loops_for(spec, input, convolved)),
      input_(input),
      convolved_(convolved),
      pooled_(convolved),
      blocks_(input.groups * input.lanes / vector),
      taps_(spec.kernel.area()),
      places_(spec.pool->kernel.area()),
      to_parameter_(make_weight_reorder(runtime, inputs_by_sixteens(weight), weight)),
      from_parameter_(make_weight_reorder(runtime, weight, inputs_by_sixteens(weight))),
      parameter_bytes_(weight.bytes()),
      weight_bytes_(inputs_by_sixteens(weight).bytes()) {
  const Shape pooled = pool_output({convolved.samples, convolved.height, convolved.width, spec.outputs}, *spec.pool);
  pooled_.height = pooled[1];
  pooled_.width = pooled[2];
  for (std::int64_t place = 0; place < places_; ++place) {
    const std::int64_t row = place / spec.pool->kernel.width * spec.stride.height,
                       column = place % spec.pool->kernel.width * spec.stride.width;
    place_at_[static_cast<std::size_t>(place)] = static_cast<std::int32_t>((row * input.width + column) * input.lanes);
  }
  constexpr std::int64_t cached_floats = 6000;  // most of a first-level cache
  group_ = static_cast<std::size_t>(std::clamp<std::int64_t>(cached_floats / (input.positions() * vector), 1, 8));
  list_length_ = std::max(group_ * static_cast<std::size_t>(pooled_.positions()) + 1,
                          static_cast<std::size_t>(places_ * (spec.outputs + 1)));
  plan_marks();
  if (is_marked())
    list_length_ =
        std::max(list_length_, static_cast<std::size_t>(winner_loops::scratch_bytes(geometry())) / sizeof(Winner) + 1);
  sums_offset_ = weight_bytes_ + static_cast<std::size_t>(threads_) * list_length_ * sizeof(Winner);
  parts_offset_ = sums_offset_;
  if (spec.input.dtype != DType::float32)
    parts_offset_ += static_cast<std::size_t>(threads_ * sample_size()) * sizeof(float);
  constexpr std::int64_t windows_of_list = 32;  // each list of winners has a sum of its own
  const std::int64_t lists = (pooled_.positions() + windows_of_list - 1) / windows_of_list;
  parts_ = SumParts::of(input.samples, lists, static_cast<std::int64_t>(weight_bytes_ / sizeof(float)));
  scratch_bytes_ = parts_offset_ + parts_.scratch_bytes(weight_bytes_);
}

/// Fills what the loops of winner_kernels.hpp read, where they can compute this convolution.
void WinnerGradients::plan_marks() {
  if (loops_ == nullptr) return;
  const auto places_of = [this](const Images& images, std::int64_t channels) {
    std::vector<std::int64_t> places;
    for (std::int64_t channel = 0; channel < channels; channel += loops_->lanes)
      places.push_back(channel / images.lanes * images.image_size() + channel % images.lanes);
    return places;
  };
  for (std::int64_t i = 0; i < pooled_.height; ++i)
    for (std::int64_t j = 0; j < pooled_.width; ++j) windows_at_.push_back(static_cast<std::int32_t>(window_at(i, j)));
  inputs_at_ = places_of(input_, blocks_ * vector);
  outputs_at_ = places_of(pooled_, spec_.outputs);  // whatever its layout pads them to
}

winner_loops::Geometry WinnerGradients::geometry() const {
  return {input_.width * input_.lanes,
          input_.lanes,
          static_cast<std::int64_t>(inputs_at_.size()),
          inputs_at_.data(),
          spec_.outputs,
          outputs_at_.data(),
          pooled_.lanes,
          pooled_.positions(),
          windows_at_.data(),
          places_,
          place_at_.data()};
}

/// Where the window of a pooled position starts in the input; before it where the pool is padded.
std::int64_t WinnerGradients::window_at(std::int64_t i, std::int64_t j) const {
  const PoolSpec& pool = *spec_.pool;
  const std::int64_t row = i * pool.stride.height - pool.padding.height,
                     column = j * pool.stride.width - pool.padding.width;
  return (row * spec_.stride.height * input_.width + column * spec_.stride.width) * input_.lanes;
}

/// Where sixteen channels of a sample start.
std::int64_t WinnerGradients::input_block(std::int64_t block) const {
  return block * vector / input_.lanes * input_.image_size() + block * vector % input_.lanes;
}

template <LayerNumber T>
void WinnerGradients::backward_weights(const T* x, const T* dy, const std::uint8_t* winners, T* dw,
                                       std::byte* scratch) {
  float* const sums = weights_of(scratch);
  const auto workers = static_cast<std::size_t>(threads_);
  // Sums the gradients of some output channels; `add(samples, to)` adds those of some samples.
  const auto sum_up = [&](Range channels, auto&& add) {
    const std::size_t size = static_cast<std::size_t>(blocks_ * taps_ * vector), count = channels.size() * size;
    float* const more = reinterpret_cast<float*>(scratch + parts_offset_) + channels.begin * size * parts_.levels();
    sum_by_pairs({0, parts_.count()}, sums + channels.begin * size, count, more, 1, [&](std::size_t part, float* to) {
      std::fill_n(to, count, 0.0F);
      const auto first = static_cast<std::size_t>(parts_.first(part));
      add(Range{first, first + static_cast<std::size_t>(parts_.size(part))}, to);
    });
  };
  if constexpr (std::same_as<T, float>)
    // With more threads lists keep all of them busy, where channels lie in sixteens.
    if (is_marked() && (workers <= outputs_at_.size() || input_.lanes % vector != 0)) {
      const auto lanes = static_cast<std::size_t>(loops_->lanes);
      parallel_for(threads_, outputs_at_.size(), [&](Range vectors) {
        sum_up({vectors.begin * lanes, vectors.end * lanes},
               [&](Range samples, float* to) { add_marked_channels(vectors, samples, x, dy, winners, to); });
      });
      to_parameter_.run(std::array<void*, 2>{sums, dw});
      return;
    }
  parallel_for(threads_, workers, [&](Range range) {
    for (std::size_t worker = range.begin; worker < range.end; ++worker) {
      const Range channels = part_of(static_cast<std::size_t>(spec_.outputs), worker, workers);
      if (channels.size() == 0) continue;
      sum_up(channels, [&](Range samples, float* to) {
        add_channels(channels, samples, x, dy, winners, to, lists_of(scratch, worker));
      });
    }
  });
  to_parameter_.run(std::array<void*, 2>{sums, dw});
}

/// The weight gradients of some vectors of output channels, sample by sample: a sample stays in the first-level cache.
void WinnerGradients::add_marked_channels(Range vectors, Range samples, const float* x, const float* dy,
                                          const std::uint8_t* winners, float* sums) const {
  const winner_loops::Geometry g = geometry();
  const std::int64_t size = loops_->lanes * blocks_ * taps_ * vector;
  for (auto sample = static_cast<std::int64_t>(samples.begin); sample < static_cast<std::int64_t>(samples.end);
       ++sample)
    for (std::size_t i = vectors.begin; i < vectors.end; ++i) {
      const std::int64_t at = sample * pooled_size() + outputs_at_[i];
      loops_->add_weights(g, x + sample * sample_size(), dy + at, winners + at,
                          sums + static_cast<std::int64_t>(i - vectors.begin) * size);
    }
}

/// The weight gradients of some output channels.
template <LayerNumber T>
void WinnerGradients::add_channels(Range channels, Range samples, const T* x, const T* dy, const std::uint8_t* winners,
                                   float* sums, Winner* list) const {
  const auto accumulate = accumulate_of<T>(spec_.kernel.width);
  const std::int64_t channel_size = blocks_ * taps_ * vector;
  const auto begin = static_cast<std::int64_t>(channels.begin), end = static_cast<std::int64_t>(channels.end);
  for (std::size_t first = samples.begin; first < samples.end; first += group_) {
    const Range group{first, std::min(first + group_, samples.end)};
    for (std::int64_t channel = begin; channel < end; ++channel) {
      const std::size_t count = list_channel(group, channel, dy, winners, list);
      for (std::int64_t block = 0; block < blocks_; ++block)
        accumulate(list, count, x + static_cast<std::int64_t>(first) * sample_size() + input_block(block),
                   {input_.width * input_.lanes, input_.lanes},
                   sums + (channel - begin) * channel_size + block * taps_ * vector,
                   {spec_.kernel.width * vector, vector});
    }
  }
}

/// The winners of one output channel; offsets from the first sample's first channels. Every element is written, and
/// overwritten by the next where it is no winner: half of them are, so that a branch would cost more.
template <LayerNumber T>
std::size_t WinnerGradients::list_channel(Range samples, std::int64_t channel, const T* dy, const std::uint8_t* winners,
                                          Winner* list) const {
  const std::int64_t lanes = pooled_.lanes;
  const auto right = static_cast<std::int32_t>(window_at(0, 1) - window_at(0, 0));
  std::size_t count = 0;
  for (std::size_t sample = samples.begin; sample < samples.end; ++sample) {
    const std::int64_t image = static_cast<std::int64_t>(sample) * pooled_.groups + channel / lanes;
    std::int64_t at = image * pooled_.image_size() + channel % lanes;
    const std::int64_t start = static_cast<std::int64_t>(sample - samples.begin) * sample_size();
    for (std::int64_t i = 0; i < pooled_.height; ++i) {
      auto window = static_cast<std::int32_t>(start + window_at(i, 0));
      for (std::int64_t j = 0; j < pooled_.width; ++j, at += lanes, window += right) {
        const float gradient = as_float(dy[at]);
        list[count] = {gradient, window + place_at_[winners[at]]};
        count += gradient != 0;
      }
    }
  }
  return count;
}

template <LayerNumber T>
void WinnerGradients::backward_data(const T* dy, const std::uint8_t* winners, const T* w, T* dx, std::byte* scratch) {
  float* weights = weights_of(scratch);
  from_parameter_.run(std::array<void*, 2>{const_cast<T*>(w), weights});
  const auto workers = static_cast<std::size_t>(threads_);
  parallel_for(threads_, workers, [&](Range range) {
    for (std::size_t worker = range.begin; worker < range.end; ++worker) {
      const Range samples = part_of(static_cast<std::size_t>(input_.samples), worker, workers);
      for (std::size_t sample = samples.begin; sample < samples.end; ++sample) {
        const auto n = static_cast<std::int64_t>(sample);
        T* const to = dx + n * sample_size();
        if constexpr (std::same_as<T, float>) {
          add_sample(n, dy, winners, weights, to, lists_of(scratch, worker));
        } else {
          float* const sums = sums_of_sample(scratch, worker);
          add_sample(n, dy, winners, weights, sums, lists_of(scratch, worker));
          convert(sums, to, static_cast<std::size_t>(sample_size()));
        }
      }
    }
  });
}

/// The input gradient of one sample, window by window: its winners of all channels, listed by place.
template <LayerNumber T>
void WinnerGradients::add_sample(std::int64_t sample, const T* dy, const std::uint8_t* winners, const float* weights,
                                 float* sums, Winner* lists) const {
  const auto accumulate = accumulate_of<float>(spec_.kernel.width);
  const std::int64_t lanes = pooled_.lanes, channel_size = blocks_ * taps_ * vector, length = spec_.outputs + 1;
  std::fill_n(sums, sample_size(), 0.0F);
  if constexpr (std::same_as<T, float>)
    if (is_marked()) {
      const std::int64_t at = sample * pooled_size();
      return loops_->add_data(geometry(), dy + at, winners + at, weights, lists, sums);
    }
  for (std::int64_t i = 0; i < pooled_.height; ++i)
    for (std::int64_t j = 0; j < pooled_.width; ++j) {
      std::array<std::int32_t, 256> counts;
      std::fill_n(counts.begin(), places_, 0);
      for (std::int64_t group = 0; group < pooled_.groups; ++group) {
        const std::int64_t at =
            (sample * pooled_.groups + group) * pooled_.image_size() + (i * pooled_.width + j) * lanes;
        const std::int64_t channel = group * lanes, end = std::min(channel + lanes, spec_.outputs);
        for (std::int64_t lane = 0; lane < end - channel; ++lane) {
          const std::size_t place = winners[at + lane];
          const float gradient = as_float(dy[at + lane]);
          const std::int32_t count = counts[place];
          lists[static_cast<std::int64_t>(place) * length + count] = {
              gradient, static_cast<std::int32_t>((channel + lane) * channel_size)};
          counts[place] = count + (gradient != 0 ? 1 : 0);
        }
      }
      for (std::int64_t place = 0; place < places_; ++place) {
        const std::int32_t count = counts[static_cast<std::size_t>(place)];
        if (count == 0) continue;
        float* corner = sums + window_at(i, j) + place_at_[static_cast<std::size_t>(place)];
        for (std::int64_t block = 0; block < blocks_; ++block)
          accumulate(lists + place * length, static_cast<std::size_t>(count), weights + block * taps_ * vector,
                     {spec_.kernel.width * vector, vector}, corner + input_block(block),
                     {input_.width * input_.lanes, input_.lanes});
      }
    }
}

/// Tensors of the sizes of a step.
struct WinnerGradients::Rehearsal {
  Buffer x, dx, w, dy, winners, scratch;
  [[nodiscard]] std::uint8_t* places() const { return reinterpret_cast<std::uint8_t*>(winners.data()); }
};

template <LayerNumber T>
std::shared_ptr<WinnerGradients::Rehearsal> WinnerGradients::make_rehearsal() const {
  using R = Rehearsal;
  auto r = std::make_shared<R>(R{zeros<T>(input_), zeros<T>(input_), Buffer::host(parameter_bytes_), zeros<T>(pooled_),
                                 zeros<float>(pooled_), Buffer::host(scratch_bytes_)});
  const auto bit = [](std::size_t i) { return static_cast<float>(i * 2654435761U >> 15 & 1); };
  const Buffer convolved = zeros<T>(convolved_);
  for (std::size_t i = 0; i < convolved.bytes() / sizeof(T); ++i)
    data<T>(convolved)[i] = as_number<T>(bit(i) + bit(i + 7) / 2);
  const Pooling pooling(*spec_.pool, convolved_, {pooled_.samples, pooled_.height, pooled_.width, spec_.outputs});
  pooling.forward<T>(data<T>(convolved), data<T>(r->dy), r->winners.data(), threads_);
  for (std::size_t i = 0; i < r->dy.bytes() / sizeof(T); ++i) data<T>(r->dy)[i] = as_number<T>(bit(i));
  return r;
}

std::function<void()> WinnerGradients::weights_rehearsal() {
  return with_layer_number(spec_.input.dtype, [this]<class T>(std::type_identity<T>) -> std::function<void()> {
    return rehearsal([this] { return make_rehearsal<T>(); },
                     [this](const Rehearsal& r) {
                       backward_weights<T>(data<T>(r.x), data<T>(r.dy), r.places(), data<T>(r.w), r.scratch.data());
                     });
  });
}

std::function<void()> WinnerGradients::data_rehearsal() {
  return with_layer_number(spec_.input.dtype, [this]<class T>(std::type_identity<T>) -> std::function<void()> {
    return rehearsal([this] { return make_rehearsal<T>(); },
                     [this](const Rehearsal& r) {
                       backward_data<T>(data<T>(r.dy), r.places(), data<T>(r.w), data<T>(r.dx), r.scratch.data());
                     });
  });
}

template void WinnerGradients::backward_weights(const float*, const float*, const std::uint8_t*, float*, std::byte*);
template void WinnerGradients::backward_data(const float*, const std::uint8_t*, const float*, float*, std::byte*);
template void WinnerGradients::backward_weights(const BFloat16*, const BFloat16*, const std::uint8_t*, BFloat16*,
                                                std::byte*);
template void WinnerGradients::backward_data(const BFloat16*, const std::uint8_t*, const BFloat16*, BFloat16*,
                                             std::byte*);

}  // namespace ronda::onednn
