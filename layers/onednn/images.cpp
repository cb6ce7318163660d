#include <ronda/core/multiversion.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/layers/activation_layouts.hpp>
#include <ronda/layers/arithmetic.hpp>
#include <ronda/layers/onednn/images.hpp>

#include <algorithm>
#include <array>

namespace ronda::onednn {
namespace {

// Each loop once, and once for each type of number: not every compiler makes several versions of a template.

template <LayerNumber T>
[[gnu::always_inline]] inline void relu_loop(const T* __restrict x, T* __restrict y, Range range) {
  for (std::size_t i = range.begin; i < range.end; ++i) y[i] = as_number<T>(rectified(as_float(x[i])));
}
template <LayerNumber T>
[[gnu::always_inline]] inline void rectify_loop(T* values, Range range) {
  for (std::size_t i = range.begin; i < range.end; ++i) values[i] = as_number<T>(rectified(as_float(values[i])));
}
template <LayerNumber T>
[[gnu::always_inline]] inline void relu_backward_loop(const T* __restrict dy, const T* __restrict y, T* __restrict dx,
                                                      Range range) {
  for (std::size_t i = range.begin; i < range.end; ++i) {
    const float gradient = as_float(dy[i]);  // loaded always, so that the choice is no branch
    dx[i] = as_number<T>(rectified_gradient(as_float(y[i]), gradient));
  }
}
template <LayerNumber T>
[[gnu::always_inline]] inline void add_loop(const T* __restrict a, const T* __restrict b, T* __restrict y,
                                            Range range) {
  for (std::size_t i = range.begin; i < range.end; ++i) y[i] = as_number<T>(as_float(a[i]) + as_float(b[i]));
}
template <LayerNumber T>
[[gnu::always_inline]] inline void accumulate_loop(const T* __restrict b, T* __restrict y, Range range) {
  for (std::size_t i = range.begin; i < range.end; ++i) y[i] = as_number<T>(as_float(y[i]) + as_float(b[i]));
}
template <LayerNumber T>
[[gnu::always_inline]] inline void double_loop(T* y, Range range) {
  for (std::size_t i = range.begin; i < range.end; ++i) y[i] = as_number<T>(as_float(y[i]) + as_float(y[i]));
}

/// dz = dy where y is positive or NaN, and sums += dz, for `width` (16 or fewer) lanes of all positions; sums in
/// registers.
template <bool activated, LayerNumber T, class Width>
[[gnu::always_inline]] inline void mask_lanes(const T* __restrict dy, const T* __restrict y, T* __restrict dz,
                                              double* __restrict sums, const Images& images, Width width) {
  double total[16] = {};
  for (std::int64_t begin = 0; begin < images.positions(); begin += sum_block) {
    float sum[16] = {};
    for (std::int64_t p = begin; p < std::min(begin + sum_block, images.positions()); ++p)
      for (std::int64_t lane = 0; lane < width; ++lane) {
        const std::int64_t i = p * images.lanes + lane;
        float gradient = as_float(dy[i]);  // as above
        if (activated) {
          gradient = rectified_gradient(as_float(y[i]), gradient);
          dz[i] = as_number<T>(gradient);
        }
        sum[lane] += gradient;
      }
    for (std::int64_t lane = 0; lane < width; ++lane) total[lane] += double{sum[lane]};
  }
  for (std::int64_t lane = 0; lane < width; ++lane) sums[lane] += total[lane];
}

/// One image.
template <bool activated, LayerNumber T>
[[gnu::always_inline]] inline void mask_image(const T* dy, const T* y, T* dz, double* sums, const Images& images) {
  by_lanes(images.lanes, [&](std::int64_t lane, auto width) RONDA_INLINE {
    mask_lanes<activated>(dy + lane, y + lane, dz + lane, sums + lane, images, width);
  });
}

using Half = BFloat16;
RONDA_MULTIVERSION void relu_range(const float* x, float* y, Range range) { relu_loop(x, y, range); }
RONDA_MULTIVERSION void relu_range(const Half* x, Half* y, Range range) { relu_loop(x, y, range); }
RONDA_MULTIVERSION void rectify_range(float* values, Range range) { rectify_loop(values, range); }
RONDA_MULTIVERSION void rectify_range(Half* values, Range range) { rectify_loop(values, range); }
RONDA_MULTIVERSION void relu_backward_range(const float* dy, const float* y, float* dx, Range range) {
  relu_backward_loop(dy, y, dx, range);
}
RONDA_MULTIVERSION void relu_backward_range(const Half* dy, const Half* y, Half* dx, Range range) {
  relu_backward_loop(dy, y, dx, range);
}
RONDA_MULTIVERSION void add_range(const float* a, const float* b, float* y, Range range) { add_loop(a, b, y, range); }
RONDA_MULTIVERSION void add_range(const Half* a, const Half* b, Half* y, Range range) { add_loop(a, b, y, range); }
RONDA_MULTIVERSION void accumulate_range(const float* b, float* y, Range range) { accumulate_loop(b, y, range); }
RONDA_MULTIVERSION void accumulate_range(const Half* b, Half* y, Range range) { accumulate_loop(b, y, range); }
RONDA_MULTIVERSION void double_range(float* y, Range range) { double_loop(y, range); }
RONDA_MULTIVERSION void double_range(Half* y, Range range) { double_loop(y, range); }
RONDA_MULTIVERSION void mask_and_sum(const float* dy, const float* y, float* dz, double* sums, const Images& images) {
  mask_image<true>(dy, y, dz, sums, images);
}
RONDA_MULTIVERSION void mask_and_sum(const Half* dy, const Half* y, Half* dz, double* sums, const Images& images) {
  mask_image<true>(dy, y, dz, sums, images);
}
RONDA_MULTIVERSION void sum_only(const float* dy, double* sums, const Images& images) {
  mask_image<false, float>(dy, dy, nullptr, sums, images);
}
RONDA_MULTIVERSION void sum_only(const Half* dy, double* sums, const Images& images) {
  mask_image<false, Half>(dy, dy, nullptr, sums, images);
}

}  // namespace

std::string text_of_type(DType dtype) { return dtype == DType::float32 ? "" : " in " + std::string(name_of(dtype)); }

std::optional<Images> images_of(const TensorDesc& tensor) {
  const Shape& shape = tensor.shape;
  if (shape.rank() < 2) return std::nullopt;
  if (is_sequence(shape)) return images_of(image_of(tensor));
  const TensorDesc plain{shape, tensor.dtype, {}};
  if (shape.rank() != 4) {
    if (!same_bytes(tensor, plain)) return std::nullopt;
    std::int64_t positions = 1;
    for (int axis = 1; axis + 1 < shape.rank(); ++axis) positions *= shape[axis];
    return Images{shape[0], 1, 1, positions, shape[shape.rank() - 1]};
  }
  const Images whole{shape[0], 1, shape[1], shape[2], shape[3]};
  const auto blocks = tensor.layout.blocks();
  const bool in_groups = blocks.empty() || (blocks.size() == 1 && blocks[0].axis == 3);
  if (!in_groups) return same_bytes(tensor, plain) ? std::optional(whole) : std::nullopt;
  Images images = whole;
  images.lanes = blocks.empty() ? 1 : blocks[0].size;
  images.groups = (shape[3] + images.lanes - 1) / images.lanes;
  const TensorDesc grouped{shape, tensor.dtype, Layout(std::array{0, 3, 1, 2}, blocks)};
  // An image of one pixel has equal bytes either way; what is made of it in its layout, and is larger, has not.
  if (tensor.layout == grouped.layout) return images;
  if (same_bytes(tensor, plain)) return whole;
  return same_bytes(tensor, grouped) ? std::optional(images) : std::nullopt;
}

template <LayerNumber T>
void relu(const T* x, T* y, std::size_t count, int threads) {
  parallel_for(
      threads, count, [&](Range range) { relu_range(x, y, range); }, 16);
}

template <LayerNumber T>
void rectify(T* values, std::size_t count, int threads) {
  constexpr std::size_t worth_a_thread = 1 << 14;
  const auto useful = static_cast<int>(std::min(count / worth_a_thread + 1, static_cast<std::size_t>(threads)));
  parallel_for(
      useful, count, [&](Range range) { rectify_range(values, range); }, 16);
}

template <LayerNumber T>
void add(const T* a, const T* b, T* y, std::size_t count, int threads) {
  parallel_for(
      threads, count,
      [&](Range range) {
        if (y != a)
          add_range(a, b, y, range);
        else if (y != b)
          accumulate_range(b, y, range);
        else
          double_range(y, range);
      },
      16);
}

template <LayerNumber T>
void relu_backward(const T* dy, const T* y, T* dx, std::size_t count, int threads) {
  parallel_for(
      threads, count, [&](Range range) { relu_backward_range(dy, y, dx, range); }, 16);
}

std::size_t BiasAndActivation::scratch_bytes() const noexcept {
  return static_cast<std::size_t>(threads_ * images_.groups * images_.lanes) * sizeof(double);
}

template <LayerNumber T>
void BiasAndActivation::backward(const T* dy, const T* y, T* dz, T* db, std::byte* scratch) const {
  if (y == nullptr && db == nullptr) return;
  const std::int64_t channels = images_.groups * images_.lanes;
  auto* partial = reinterpret_cast<double*>(scratch);  // a row of sums for each thread
  const auto threads = static_cast<std::size_t>(threads_);
  parallel_for(threads_, threads, [&](Range workers) {
    for (std::size_t worker = workers.begin; worker < workers.end; ++worker) {
      double* sums = partial + static_cast<std::int64_t>(worker) * channels;
      std::fill_n(sums, channels, 0.0);
      add_samples(part_of(static_cast<std::size_t>(images_.samples), worker, threads), dy, y, dz, sums);
    }
  });
  if (db == nullptr) return;
  for (std::size_t worker = 1; worker < threads; ++worker)
    for (std::int64_t c = 0; c < channels_; ++c)
      partial[c] += partial[static_cast<std::int64_t>(worker) * channels + c];
  std::transform(partial, partial + channels_, db, [](double sum) { return as_number<T>(static_cast<float>(sum)); });
}

template <LayerNumber T>
void BiasAndActivation::add_samples(Range samples, const T* dy, const T* y, T* dz, double* sums) const {
  Images images = images_;
  auto first = static_cast<std::int64_t>(samples.begin), last = static_cast<std::int64_t>(samples.end);
  if (images.groups == 1 && images.positions() == 1) {  // rows of a matrix: as the positions of one image
    images.height = last - first;
    last = first + 1;
  }
  for (std::int64_t image = first * images.groups; image < last * images.groups; ++image) {
    const std::int64_t at = image * images_.image_size();
    double* group_sums = sums + image % images.groups * images.lanes;
    if (y != nullptr)
      mask_and_sum(dy + at, y + at, dz + at, group_sums, images);
    else
      sum_only(dy + at, group_sums, images);
  }
}

template void relu(const float*, float*, std::size_t, int);
template void rectify(float*, std::size_t, int);
template void add(const float*, const float*, float*, std::size_t, int);
template void relu_backward(const float*, const float*, float*, std::size_t, int);
template void BiasAndActivation::backward(const float*, const float*, float*, float*, std::byte*) const;
template void relu(const Half*, Half*, std::size_t, int);
template void rectify(Half*, std::size_t, int);
template void add(const Half*, const Half*, Half*, std::size_t, int);
template void relu_backward(const Half*, const Half*, Half*, std::size_t, int);
template void BiasAndActivation::backward(const Half*, const Half*, Half*, Half*, std::byte*) const;

}  // namespace ronda::onednn
