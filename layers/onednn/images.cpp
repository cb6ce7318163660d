#include <ronda/core/lanes.hpp>
#include <ronda/core/multiversion.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/layers/onednn/images.hpp>
#include <ronda/layers/rectifier.hpp>

#include <algorithm>
#include <array>

namespace ronda::onednn {
namespace {

RONDA_MULTIVERSION void relu_range(const float* __restrict x, float* __restrict y, Range range) {
  for (std::size_t i = range.begin; i < range.end; ++i) y[i] = rectified(x[i]);
}
RONDA_MULTIVERSION void rectify_range(float* values, Range range) {
  for (std::size_t i = range.begin; i < range.end; ++i) values[i] = rectified(values[i]);
}
RONDA_MULTIVERSION void relu_backward_range(const float* __restrict dy, const float* __restrict y, float* __restrict dx,
                                            Range range) {
  for (std::size_t i = range.begin; i < range.end; ++i) {
    const float gradient = dy[i];  // loaded always, so that the choice is no branch
    dx[i] = rectified_gradient(y[i], gradient);
  }
}

RONDA_MULTIVERSION void add_range(const float* __restrict a, const float* __restrict b, float* __restrict y,
                                  Range range) {
  for (std::size_t i = range.begin; i < range.end; ++i) y[i] = a[i] + b[i];
}
RONDA_MULTIVERSION void accumulate_range(const float* __restrict b, float* __restrict y, Range range) {
  for (std::size_t i = range.begin; i < range.end; ++i) y[i] += b[i];
}
RONDA_MULTIVERSION void double_range(float* y, Range range) {
  for (std::size_t i = range.begin; i < range.end; ++i) y[i] += y[i];
}

/// dz = dy where y is positive or NaN, and sums += dz, for `width` (16 or fewer) lanes of all positions; sums in
/// registers.
template <bool activated, class Width>
[[gnu::always_inline]] inline void mask_lanes(const float* __restrict dy, const float* __restrict y,
                                              float* __restrict dz, float* __restrict sums, const Images& images,
                                              Width width) {
  float sum[16] = {};
  for (std::int64_t p = 0; p < images.positions(); ++p)
    for (std::int64_t lane = 0; lane < width; ++lane) {
      const std::int64_t i = p * images.lanes + lane;
      float gradient = dy[i];  // as above
      if (activated) dz[i] = gradient = rectified_gradient(y[i], gradient);
      sum[lane] += gradient;
    }
  for (std::int64_t lane = 0; lane < width; ++lane) sums[lane] += sum[lane];
}

/// One image.
template <bool activated>
[[gnu::always_inline]] inline void mask_image(const float* dy, const float* y, float* dz, float* sums,
                                              const Images& images) {
  by_lanes(images.lanes, [&](std::int64_t lane, auto width) RONDA_INLINE {
    mask_lanes<activated>(dy + lane, y + lane, dz + lane, sums + lane, images, width);
  });
}
RONDA_MULTIVERSION void mask_and_sum(const float* dy, const float* y, float* dz, float* sums, const Images& images) {
  mask_image<true>(dy, y, dz, sums, images);
}
RONDA_MULTIVERSION void sum_only(const float* dy, float* sums, const Images& images) {
  mask_image<false>(dy, dy, nullptr, sums, images);
}

}  // namespace

std::optional<Images> images_of(const TensorDesc& tensor) {
  const Shape& shape = tensor.shape;
  if (shape.rank() < 2) return std::nullopt;
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

void relu(const float* x, float* y, std::size_t count, int threads) {
  parallel_for(
      threads, count, [&](Range range) { relu_range(x, y, range); }, 16);
}

void rectify(float* values, std::size_t count, int threads) {
  constexpr std::size_t worth_a_thread = 1 << 14;
  const auto useful = static_cast<int>(std::min(count / worth_a_thread + 1, static_cast<std::size_t>(threads)));
  parallel_for(
      useful, count, [&](Range range) { rectify_range(values, range); }, 16);
}

void add(const float* a, const float* b, float* y, std::size_t count, int threads) {
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

void relu_backward(const float* dy, const float* y, float* dx, std::size_t count, int threads) {
  parallel_for(
      threads, count, [&](Range range) { relu_backward_range(dy, y, dx, range); }, 16);
}

std::size_t BiasAndActivation::scratch_bytes() const noexcept {
  return static_cast<std::size_t>(threads_ * images_.groups * images_.lanes) * sizeof(float);
}

void BiasAndActivation::backward(const float* dy, const float* y, float* dz, float* db, std::byte* scratch) const {
  if (y == nullptr && db == nullptr) return;
  const std::int64_t channels = images_.groups * images_.lanes;
  auto* partial = reinterpret_cast<float*>(scratch);  // a row of sums for each thread
  const auto threads = static_cast<std::size_t>(threads_);
  parallel_for(threads_, threads, [&](Range workers) {
    for (std::size_t worker = workers.begin; worker < workers.end; ++worker) {
      float* sums = partial + static_cast<std::int64_t>(worker) * channels;
      std::fill_n(sums, channels, 0.0F);
      add_samples(part_of(static_cast<std::size_t>(images_.samples), worker, threads), dy, y, dz, sums);
    }
  });
  if (db == nullptr) return;
  std::copy_n(partial, channels_, db);
  for (std::size_t worker = 1; worker < threads; ++worker)
    for (std::int64_t c = 0; c < channels_; ++c) db[c] += partial[static_cast<std::int64_t>(worker) * channels + c];
}

void BiasAndActivation::add_samples(Range samples, const float* dy, const float* y, float* dz, float* sums) const {
  Images images = images_;
  auto first = static_cast<std::int64_t>(samples.begin), last = static_cast<std::int64_t>(samples.end);
  if (images.groups == 1 && images.positions() == 1) {  // rows of a matrix: as the positions of one image
    images.height = last - first;
    last = first + 1;
  }
  for (std::int64_t image = first * images.groups; image < last * images.groups; ++image) {
    const std::int64_t at = image * images_.image_size();
    float* group_sums = sums + image % images.groups * images.lanes;
    if (y != nullptr)
      mask_and_sum(dy + at, y + at, dz + at, group_sums, images);
    else
      sum_only(dy + at, group_sums, images);
  }
}

}  // namespace ronda::onednn
