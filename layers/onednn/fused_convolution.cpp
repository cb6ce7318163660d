#include <ronda/core/buffer.hpp>
#include <ronda/core/multiversion.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/layers/onednn/fused_convolution.hpp>
#include <ronda/layers/onednn/memory_desc.hpp>
#include <ronda/layers/onednn/patches.hpp>
#include <ronda/layers/onednn/sums.hpp>

#include <algorithm>
#include <array>
#include <cstring>

namespace ronda::onednn {
namespace {

using Windows = FusedConvolution::Windows;

/// Eight output channels: sums in a register that stay there from window to window, which loops over arrays do not.
using Eight = float __attribute__((vector_size(32)));
using Places = std::int32_t __attribute__((vector_size(32)));
constexpr std::int64_t eight = 8;

using EightHalves = std::uint16_t __attribute__((vector_size(16)));
using EightBits = std::uint32_t __attribute__((vector_size(32)));

[[gnu::always_inline]] inline void load(const float* from, Eight& into) { std::memcpy(&into, from, sizeof(into)); }
[[gnu::always_inline]] inline void store(const Eight& from, float* into) { std::memcpy(into, &from, sizeof(from)); }
[[gnu::always_inline]] inline void load(const BFloat16* from, Eight& into) {
  EightHalves halves;
  std::memcpy(&halves, from, sizeof(halves));
  const EightBits bits = __builtin_convertvector(halves, EightBits) << 16;
  std::memcpy(&into, &bits, sizeof(into));
}
/// As to_half<BFloat16> rounds.
[[gnu::always_inline]] inline void store(const Eight& from, BFloat16* into) {
  EightBits bits;
  std::memcpy(&bits, &from, sizeof(bits));
  const EightBits rounded = (bits + 0x7fffU + (bits >> 16 & 1U)) >> 16, nan = bits >> 16 | 0x40U;
  const EightHalves halves =
      __builtin_convertvector(from == from ? rounded : nan, EightHalves);  // NOLINT(misc-redundant-expression)
  std::memcpy(static_cast<void*>(into), &halves, sizeof(halves));
}

/// The kernel's weights for eight channels, in registers where its size is known here.
template <int rows, int row>
struct Weights {
  Eight taps[rows][row];
  Eight bias;

  [[gnu::always_inline]] Weights(const float* w, const float* b) {
    load(b, bias);
#pragma GCC unroll 9
    for (int kh = 0; kh < rows; ++kh)
#pragma GCC unroll 9
      for (int k = 0; k < row; ++k) load(w + (kh * row + k) * vector, taps[kh][k]);
  }
  [[gnu::always_inline]] void sum_at(const Windows& p, const float* x, Eight& sum) const {
    sum = bias;
#pragma GCC unroll 9
    for (int kh = 0; kh < rows; ++kh)
#pragma GCC unroll 9
      for (int k = 0; k < row; ++k) sum += taps[kh][k] * x[kh * p.below + k];
  }
};

/// Of any size: from the cache.
template <>
struct Weights<0, 0> {
  const float* taps;
  Eight bias;

  [[gnu::always_inline]] Weights(const float* w, const float* b) : taps(w) { load(b, bias); }
  [[gnu::always_inline]] void sum_at(const Windows& p, const float* x, Eight& sum) const {
    sum = bias;
    const float* next = taps;
    for (std::int64_t kh = 0; kh < p.rows; ++kh)
      for (std::int64_t k = 0; k < p.row; ++k, next += vector) {
        Eight tap;
        load(next, tap);
        sum += tap * x[kh * p.below + k];
      }
  }
};

template <class Weights, LayerNumber T>
[[gnu::always_inline]] inline void convolve_eight(const Windows& p, const float* x, const float* w, const float* bias,
                                                  T* y, std::uint8_t* winners) {
  const Weights weights(w, bias);
  for (std::int64_t i = 0; i < p.height; ++i)
    for (std::int64_t j = 0; j < p.width; ++j, y += p.lanes, winners += p.lanes) {
      const float* window = x + i * p.window_down + j * p.window_right;
      Eight best, sum;
      Places where{};
      weights.sum_at(p, window, best);
      for (std::int64_t place = 1; place < p.places; ++place) {
        weights.sum_at(p, window + p.place_at[static_cast<std::size_t>(place)], sum);
        // Of equals the first stays, of NaNs the last.
        const Places greater = (best < sum) | (sum != sum);  // NOLINT(misc-redundant-expression)
        best = greater ? sum : best;
        where = greater ? static_cast<std::int32_t>(place) - Places{} : where;
      }
      if (p.relu) best = best < Eight{} ? Eight{} : best;
      store(best, y);
      std::array<std::int32_t, eight> whole;
      std::memcpy(whole.data(), &where, sizeof(where));
      for (std::size_t l = 0; l < whole.size(); ++l) winners[l] = static_cast<std::uint8_t>(whole[l]);
    }
}

/// Sixteen output channels of one sample, or eight where there are no more.
template <LayerNumber T>
[[gnu::always_inline]] inline void convolve_sixteen(const Windows& p, const float* x, const float* w, const float* bias,
                                                    std::int64_t channels, T* y, std::uint8_t* winners) {
  for (std::int64_t lane = 0; lane < channels; lane += eight, y += p.next_eight, winners += p.next_eight) {
    if (p.rows == 3 && p.row == 3)
      convolve_eight<Weights<3, 3>>(p, x, w + lane, bias + lane, y, winners);
    else
      convolve_eight<Weights<0, 0>>(p, x, w + lane, bias + lane, y, winners);
  }
}
RONDA_MULTIVERSION void convolve_and_pool(const Windows& p, const float* x, const float* w, const float* bias,
                                          std::int64_t channels, float* y, std::uint8_t* winners) {
  convolve_sixteen(p, x, w, bias, channels, y, winners);
}
RONDA_MULTIVERSION void convolve_and_pool(const Windows& p, const float* x, const float* w, const float* bias,
                                          std::int64_t channels, BFloat16* y, std::uint8_t* winners) {
  convolve_sixteen(p, x, w, bias, channels, y, winners);
}

/// Adds what rows × columns elements of the kernel get from one sample, for eight output channels.
/// @param x, sums  from the first of the elements on
template <int rows, int columns, LayerNumber T>
[[gnu::always_inline]] inline void add_elements(const Windows& p, const float* __restrict x, const T* __restrict dy,
                                                const std::uint8_t* __restrict winners, float* __restrict sums) {
  Eight sum[rows][columns], gradient;
#pragma GCC unroll 9
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 9
    for (int c = 0; c < columns; ++c) load(sums + (r * p.row + c) * vector, sum[r][c]);
  for (std::int64_t i = 0; i < p.height; ++i)
    for (std::int64_t j = 0; j < p.width; ++j, dy += p.lanes, winners += p.lanes) {
      const float* window = x + i * p.window_down + j * p.window_right;
      std::array<std::int32_t, eight> whole;
      for (std::size_t l = 0; l < whole.size(); ++l) whole[l] = winners[l];
      Places where;
      std::memcpy(&where, whole.data(), sizeof(where));
      load(dy, gradient);
      for (std::int64_t place = 0; place < p.places; ++place) {
        const float* corner = window + p.place_at[static_cast<std::size_t>(place)];
        const Eight here = where == static_cast<std::int32_t>(place) - Places{} ? gradient : Eight{};
#pragma GCC unroll 9
        for (int r = 0; r < rows; ++r)
#pragma GCC unroll 9
          for (int c = 0; c < columns; ++c) sum[r][c] += here * corner[r * p.below + c];
      }
    }
#pragma GCC unroll 9
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 9
    for (int c = 0; c < columns; ++c) store(sum[r][c], sums + (r * p.row + c) * vector);
}

/// Elements of one row of the kernel, as many at a time as there are registers for.
template <int columns, LayerNumber T>
[[gnu::always_inline]] inline void add_row(const Windows& p, const float* x, const T* dy, const std::uint8_t* winners,
                                           float* sums, std::int64_t& done) {
  for (; done + columns <= p.row; done += columns)
    add_elements<1, columns>(p, x + done, dy, winners, sums + done * vector);
}

/// Sixteen output channels of one sample, or eight where there are no more.
template <LayerNumber T>
[[gnu::always_inline]] inline void add_sixteen(const Windows& p, const float* x, const T* dy,
                                               const std::uint8_t* winners, std::int64_t channels, float* sums) {
  for (std::int64_t lane = 0; lane < channels;
       lane += eight, dy += p.next_eight, winners += p.next_eight, sums += eight) {
    if (p.rows == 3 && p.row == 3) {
      add_elements<3, 3>(p, x, dy, winners, sums);
      continue;
    }
    for (std::int64_t kh = 0; kh < p.rows; ++kh) {
      std::int64_t done = 0;
      add_row<9>(p, x + kh * p.below, dy, winners, sums + kh * p.row * vector, done);
      add_row<5>(p, x + kh * p.below, dy, winners, sums + kh * p.row * vector, done);
      add_row<1>(p, x + kh * p.below, dy, winners, sums + kh * p.row * vector, done);
    }
  }
}
RONDA_MULTIVERSION void add_gradients(const Windows& p, const float* x, const float* dy, const std::uint8_t* winners,
                                      std::int64_t channels, float* sums) {
  add_sixteen(p, x, dy, winners, channels, sums);
}
RONDA_MULTIVERSION void add_gradients(const Windows& p, const float* x, const BFloat16* dy, const std::uint8_t* winners,
                                      std::int64_t channels, float* sums) {
  add_sixteen(p, x, dy, winners, channels, sums);
}

TensorDesc outputs_by_sixteens(const TensorDesc& weight) {
  return {weight.shape, DType::float32, Layout::parse("acdb16a")};
}

Windows windows_of(const ConvolutionProblem& spec, const Images& input, const Images& pooled) {
  const PoolSpec& pool = *spec.pool;
  const std::int64_t channels = input.lanes, below = (input.width + 2 * spec.padding.width) * channels;
  Windows windows{spec.kernel.height,
                  spec.kernel.width * channels,
                  below,
                  pooled.height,
                  pooled.width,
                  pooled.lanes,
                  pooled.lanes > eight ? eight : pooled.image_size(),
                  pool.stride.height * spec.stride.height * below,
                  pool.stride.width * spec.stride.width * channels,
                  pool.kernel.area(),
                  {},
                  spec.activation == Activation::relu};
  for (std::int64_t place = 0; place < windows.places; ++place)
    windows.place_at[static_cast<std::size_t>(place)] = place / pool.kernel.width * spec.stride.height * below +
                                                        place % pool.kernel.width * spec.stride.width * channels;
  return windows;
}

}  // namespace

std::unique_ptr<FusedConvolution> FusedConvolution::make(const Runtime& runtime, const ConvolutionProblem& spec,
                                                         const TensorDesc& convolved, const TensorDesc& weight) {
  if (!spec.is_usual() || !spec.pool || spec.pool->kind != PoolKind::maximum || spec.pool->kernel.area() > 256 ||
      spec.pool->padding != 0)
    return nullptr;
  const auto input = images_of(spec.input), output = images_of(convolved);
  if (!input || !output || output->lanes % eight != 0) return nullptr;
  if (input->groups != 1 || input->lanes != spec.input.shape[3] || input->lanes > most_channels) return nullptr;
  return std::unique_ptr<FusedConvolution>(new FusedConvolution(runtime, spec, *input, *output, weight));
}

FusedConvolution::FusedConvolution(const Runtime& runtime, const ConvolutionProblem& spec, const Images& input,
                                   const Images& convolved, const TensorDesc& weight)
    : threads_(runtime.threads),
      spec_(spec),
      input_(input),
      pooled_(convolved),
      channels_(convolved.groups * convolved.lanes),
      sixteens_(parts(channels_, vector)),
      weights_of_sixteen_(spec.kernel.area() * input.lanes * vector),
      to_parameter_(make_weight_reorder(runtime, outputs_by_sixteens(weight), weight)),
      from_parameter_(make_weight_reorder(runtime, weight, outputs_by_sixteens(weight))),
      parameter_bytes_(weight.bytes()) {
  const Shape pooled = pool_output({convolved.samples, convolved.height, convolved.width, spec.outputs}, *spec.pool);
  pooled_.height = pooled[1];
  pooled_.width = pooled[2];
  windows_ = windows_of(spec, input, pooled_);
  in_patches_ = spec.input.dtype == DType::float32 && pooled_.lanes % vector == 0 && patches::suit(windows_);
  const auto bytes = [](std::int64_t floats) {
    return (static_cast<std::size_t>(floats) * sizeof(float) + Buffer::alignment - 1) / Buffer::alignment *
           Buffer::alignment;
  };
  ArenaPlan scratch;
  const auto workers = static_cast<std::size_t>(threads_);
  sums_bytes_ = bytes(sixteens_ * weights_of_sixteen_);
  if (in_patches_)
    patches_bytes_ = (patches::bytes_of(windows_) + Buffer::alignment - 1) / Buffer::alignment * Buffer::alignment;
  padded_bytes_ = spec.padding == 0 && spec.input.dtype == DType::float32
                      ? 0
                      : bytes((input.height + 2 * spec.padding.height) * windows_.below);
  sums_offset_ = scratch.reserve(workers * sums_bytes_);  // the first worker's; forward: the weights
  totals_offset_ =
      scratch.reserve(workers * static_cast<std::size_t>(sixteens_ * weights_of_sixteen_) * sizeof(double));
  bias_offset_ = scratch.reserve(bytes(sixteens_ * vector));
  padded_offset_ = scratch.reserve(workers * padded_bytes_);
  taps_offset_ = scratch.reserve(in_patches_ ? bytes(sixteens_ * patches::transformed_taps * vector) : 0);
  patches_offset_ = scratch.reserve(workers * patches_bytes_);
  scratch_bytes_ = scratch.bytes();
}

template <LayerNumber T, class Body>
void FusedConvolution::each_sample(const T* x, std::byte* scratch, Body&& body) const {
  const auto workers = static_cast<std::size_t>(threads_);
  parallel_for(threads_, workers, [&](Range range) {
    for (std::size_t worker = range.begin; worker < range.end; ++worker) {
      const Range samples = part_of(static_cast<std::size_t>(input_.samples), worker, workers);
      float* room = floats(scratch, padded_offset_ + worker * padded_bytes_);
      for (auto sample = static_cast<std::int64_t>(samples.begin); sample < static_cast<std::int64_t>(samples.end);
           ++sample)
        body(sample, padded(x + sample * input_.image_size(), room), worker);
    }
  });
}

/// In float32: the sample itself where it is that and nothing is to be added around it.
template <LayerNumber T>
const float* FusedConvolution::padded(const T* sample, float* into) const {
  const std::int64_t row = input_.width * input_.lanes;
  if constexpr (std::same_as<T, float>)
    if (spec_.padding == 0) return sample;
  if (spec_.padding != 0) std::fill_n(into, (input_.height + 2 * spec_.padding.height) * windows_.below, 0.0F);
  for (std::int64_t h = 0; h < input_.height; ++h) {
    float* const to = into + (h + spec_.padding.height) * windows_.below + spec_.padding.width * input_.lanes;
    if constexpr (std::same_as<T, float>)
      std::copy_n(sample + h * row, row, to);
    else
      convert(sample + h * row, to, static_cast<std::size_t>(row));
  }
  return into;
}

template <LayerNumber T>
void FusedConvolution::forward(const T* x, const T* w, const T* bias, T* y, std::uint8_t* winners, std::byte* scratch) {
  float* weights = floats(scratch, sums_offset_);
  float* biases = floats(scratch, bias_offset_);
  from_parameter_.run(std::array<void*, 2>{const_cast<T*>(w), weights});
  std::fill_n(biases, sixteens_ * vector, 0.0F);
  if (bias != nullptr) std::transform(bias, bias + spec_.outputs, biases, as_float<T>);
  if constexpr (std::same_as<T, float>)
    if (in_patches_) return forward_in_patches(x, y, winners, scratch);
  each_sample(x, scratch, [&](std::int64_t sample, const float* image, std::size_t) {
    for (std::int64_t sixteen = 0; sixteen < sixteens_; ++sixteen) {
      const std::int64_t at = output_at(sample, sixteen);
      convolve_and_pool(windows_, image, weights + sixteen * weights_of_sixteen_, biases + sixteen * vector,
                        channels_of(sixteen), y + at, winners + at);
    }
  });
}

/// With weights and biases in place.
void FusedConvolution::forward_in_patches(const float* x, float* y, std::uint8_t* winners, std::byte* scratch) const {
  const float *weights = floats(scratch, sums_offset_), *biases = floats(scratch, bias_offset_);
  float* taps = floats(scratch, taps_offset_);
  constexpr std::int64_t size = patches::transformed_taps * vector;
  for (std::int64_t sixteen = 0; sixteen < sixteens_; ++sixteen)
    patches::transform_weights(weights + sixteen * weights_of_sixteen_, taps + sixteen * size);
  each_sample(x, scratch, [&](std::int64_t sample, const float* image, std::size_t worker) {
    const patches::Cut cut = patches::cut(windows_, image, true, scratch + patches_offset_ + worker * patches_bytes_);
    for (std::int64_t sixteen = 0; sixteen < sixteens_; ++sixteen) {
      const std::int64_t at = output_at(sample, sixteen);
      patches::convolve_and_pool(windows_, cut, taps + sixteen * size, biases + sixteen * vector, y + at, winners + at);
    }
  });
}

template <LayerNumber T>
void FusedConvolution::backward_weights(const T* x, const T* dy, const std::uint8_t* winners, T* dw,
                                        std::byte* scratch) {
  const auto workers = static_cast<std::size_t>(threads_);
  const auto numbers = static_cast<std::size_t>(sixteens_ * weights_of_sixteen_);
  std::fill_n(scratch + sums_offset_, workers * sums_bytes_, std::byte{0});
  std::fill_n(totals(scratch, 0), workers * numbers, 0.0);
  // A block of some hundred windows is summed in float32: some samples, or some rows of one.
  constexpr std::int64_t windows_of_block = 256;
  const std::int64_t rows = std::clamp<std::int64_t>(windows_of_block / std::max<std::int64_t>(windows_.width, 1), 1,
                                                     std::max<std::int64_t>(windows_.height, 1));
  const std::int64_t samples =
      std::max<std::int64_t>(windows_of_block / std::max<std::int64_t>(pooled_.positions(), 1), 1);
  const Windows block = rows_of_windows(rows), last = rows_of_windows(windows_.height % rows);
  each_sample(x, scratch, [&](std::int64_t sample, const float* image, std::size_t worker) {
    float* const sums = floats(scratch, sums_offset_ + worker * sums_bytes_);
    for (std::int64_t row = 0; row < windows_.height; row += rows) {
      const Windows& windows = row + rows <= windows_.height ? block : last;
      add_windows<T>(windows, image + row * windows_.window_down, dy + output_row(sample, row),
                     winners + output_row(sample, row), sums, scratch + patches_offset_ + worker * patches_bytes_);
      if (rows < windows_.height || (sample + 1) % samples == 0) add_block(totals(scratch, worker), sums, numbers);
    }
  });
  double* const total = totals(scratch, 0);
  for (std::size_t worker = 0; worker < workers; ++worker) {
    add_block(totals(scratch, worker), floats(scratch, sums_offset_ + worker * sums_bytes_), numbers);
    for (std::size_t i = 0; worker > 0 && i < numbers; ++i) total[i] += totals(scratch, worker)[i];
  }
  float* const sums = floats(scratch, sums_offset_);
  std::transform(total, total + numbers, sums, [](double sum) { return static_cast<float>(sum); });
  to_parameter_.run(std::array<void*, 2>{sums, dw});
}

/// Adds the weight gradients of some rows of a sample's windows, for all channels.
/// @param dy, winners  at the first row, for the first channels
template <LayerNumber T>
void FusedConvolution::add_windows(const Windows& windows, const float* x, const T* dy, const std::uint8_t* winners,
                                   float* sums, std::byte* of_patches) const {
  patches::Cut cut{};
  if (in_patches_) cut = patches::cut(windows, x, false, of_patches);
  for (std::int64_t sixteen = 0; sixteen < sixteens_; ++sixteen) {
    const std::int64_t at = output_at(0, sixteen);
    float* const of_sixteen = sums + sixteen * weights_of_sixteen_;
    if constexpr (std::same_as<T, float>) {
      if (in_patches_) {
        patches::add_gradients(windows, cut, dy + at, winners + at, of_sixteen);
        continue;
      }
    }
    add_gradients(windows, x, dy + at, winners + at, channels_of(sixteen), of_sixteen);
  }
}

FusedConvolution::Windows FusedConvolution::rows_of_windows(std::int64_t rows) const {
  Windows windows = windows_;
  windows.height = rows;
  return windows;
}

/// Offset of a row of a sample's windows, for the first channels.
std::int64_t FusedConvolution::output_row(std::int64_t sample, std::int64_t row) const {
  return output_at(sample, 0) + row * pooled_.width * pooled_.lanes;
}

/// A worker's sums, in float64.
double* FusedConvolution::totals(std::byte* scratch, std::size_t worker) const {
  return reinterpret_cast<double*>(scratch + totals_offset_) +
         worker * static_cast<std::size_t>(sixteens_ * weights_of_sixteen_);
}

/// Where sixteen output channels of a sample start.
std::int64_t FusedConvolution::output_at(std::int64_t sample, std::int64_t sixteen) const {
  const std::int64_t channel = sixteen * vector;
  return (sample * pooled_.groups + channel / pooled_.lanes) * pooled_.image_size() + channel % pooled_.lanes;
}

std::int64_t FusedConvolution::channels_of(std::int64_t sixteen) const {
  return std::min<std::int64_t>(vector, channels_ - sixteen * vector);
}

/// Tensors of the sizes of a step, and winners at all places.
struct FusedConvolution::Rehearsal {
  Buffer x, w, y, winners, scratch;
  [[nodiscard]] std::uint8_t* places() const { return reinterpret_cast<std::uint8_t*>(winners.data()); }
};

template <LayerNumber T>
std::shared_ptr<FusedConvolution::Rehearsal> FusedConvolution::make_rehearsal() const {
  using R = Rehearsal;
  auto r = std::make_shared<R>(R{zeros<T>(input_), Buffer::host(parameter_bytes_), zeros<T>(pooled_),
                                 zeros<float>(pooled_), Buffer::host(scratch_bytes_)});
  std::fill_n(data<T>(r->x), r->x.bytes() / sizeof(T), as_number<T>(1));  // no patch may be left out
  for (std::size_t i = 0; i < r->y.bytes() / sizeof(T); ++i) {
    data<T>(r->y)[i] = as_number<T>(static_cast<float>(i * 2654435761U >> 15 & 1));
    r->places()[i] = static_cast<std::uint8_t>((i * 2654435761U >> 20) % static_cast<std::size_t>(windows_.places));
  }
  return r;
}

std::function<void()> FusedConvolution::forward_rehearsal() {
  return with_layer_number(spec_.input.dtype, [this]<class T>(std::type_identity<T>) -> std::function<void()> {
    return rehearsal([this] { return make_rehearsal<T>(); },
                     [this](const Rehearsal& r) {
                       forward<T>(data<T>(r.x), data<T>(r.w), nullptr, data<T>(r.y), r.places(), r.scratch.data());
                     });
  });
}

std::function<void()> FusedConvolution::weights_rehearsal() {
  return with_layer_number(spec_.input.dtype, [this]<class T>(std::type_identity<T>) -> std::function<void()> {
    return rehearsal([this] { return make_rehearsal<T>(); },
                     [this](const Rehearsal& r) {
                       backward_weights<T>(data<T>(r.x), data<T>(r.y), r.places(), data<T>(r.w), r.scratch.data());
                     });
  });
}

template void FusedConvolution::forward(const float*, const float*, const float*, float*, std::uint8_t*, std::byte*);
template void FusedConvolution::backward_weights(const float*, const float*, const std::uint8_t*, float*, std::byte*);
template void FusedConvolution::forward(const BFloat16*, const BFloat16*, const BFloat16*, BFloat16*, std::uint8_t*,
                                        std::byte*);
template void FusedConvolution::backward_weights(const BFloat16*, const BFloat16*, const std::uint8_t*, BFloat16*,
                                                 std::byte*);

}  // namespace ronda::onednn
