#include <ronda/core/multiversion.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/layers/arithmetic.hpp>
#include <ronda/layers/onednn/pooling.hpp>

#include <algorithm>

namespace ronda::onednn {
namespace {

bool is_two_by_two(const PoolSpec& spec) { return spec.kernel == 2 && spec.stride == 2 && spec.padding == 0; }

/// What the loops over one image know.
struct Plane {
  std::int64_t height, width, lanes;  ///< of the input
  std::int64_t out_height, out_width;
  HeightWidth kernel, stride, padding;
  bool relu;        ///< what is pooled is rectified
  bool two_by_two;  ///< windows that lie side by side

  [[nodiscard]] std::int64_t input_at(std::int64_t h, std::int64_t w) const { return (h * width + w) * lanes; }
  [[nodiscard]] std::int64_t output_at(std::int64_t h, std::int64_t w) const { return (h * out_width + w) * lanes; }
};

/// The part of the window of an output position that lies in the image.
struct WindowPart {
  std::int64_t top, left;  ///< of the whole window; negative in the padding
  std::int64_t kh_begin, kh_end, kw_begin, kw_end;
  WindowPart(const Plane& p, std::int64_t oh, std::int64_t ow)
      : top(oh * p.stride.height - p.padding.height),
        left(ow * p.stride.width - p.padding.width),
        kh_begin(std::max<std::int64_t>(0, -top)),
        kh_end(std::min(p.kernel.height, p.height - top)),
        kw_begin(std::max<std::int64_t>(0, -left)),
        kw_end(std::min(p.kernel.width, p.width - left)) {}
  [[nodiscard]] float area() const { return static_cast<float>((kh_end - kh_begin) * (kw_end - kw_begin)); }
};

/// Calls `body(offset in the input, place in the window)` for every element of the window that lies in the image.
template <class Body>
[[gnu::always_inline]] inline void each_in_window(const Plane& p, const WindowPart& window, Body&& body) {
  for (std::int64_t kh = window.kh_begin; kh < window.kh_end; ++kh)
    for (std::int64_t kw = window.kw_begin; kw < window.kw_end; ++kw)
      body(p.input_at(window.top + kh, window.left + kw), static_cast<float>(kh * p.kernel.width + kw));
}

/// Calls `body(window, offset in the output, width)` for every position and piece of lanes; the offset of the lane in
/// the piece is within the output's.
template <class Body>
[[gnu::always_inline]] inline void each_output(const Plane& p, Body&& body) {
  for (std::int64_t oh = 0; oh < p.out_height; ++oh)
    for (std::int64_t ow = 0; ow < p.out_width; ++ow) {
      const WindowPart window(p, oh, ow);
      by_lanes(p.lanes, [&](std::int64_t lane, auto width)
                            RONDA_INLINE { body(window, p.output_at(oh, ow) + lane, lane, width); });
    }
}

/// The maximum of up to 16 lanes, and the place where it is: as a float, since the compiler makes vector instructions
/// of choices only where what is compared and what is chosen have one type.
struct Maximum {
  float value[16];
  float place[16];

  template <LayerNumber T, class Width>
  [[gnu::always_inline]] void start(const T* __restrict x, float at, Width width) {
    each_lane(width, [&](std::int64_t l) RONDA_INLINE { value[l] = as_float(x[l]); });
    each_lane(width, [&](std::int64_t l) RONDA_INLINE { place[l] = at; });
  }
  /// To be called for all places, from the first to the last.
  template <LayerNumber T, class Width>
  [[gnu::always_inline]] void take(const T* __restrict x, float at, Width width) {
    each_lane(width, [&](std::int64_t l) RONDA_INLINE {
      const float candidate = as_float(x[l]), best = value[l];
      place[l] = beats(candidate, best) ? at : place[l];
      value[l] = beats(candidate, best) ? candidate : best;
    });
  }
  template <LayerNumber T, class Winner, class Width>
  [[gnu::always_inline]] void store(T* __restrict y, Winner* __restrict winners, bool relu, Width width) const {
    std::int32_t whole[16]{};  // g++ 14 does not see that all that is read was written
    if (relu)
      for (std::int64_t l = 0; l < width; ++l) y[l] = as_number<T>(rectified(value[l]));
    else
      for (std::int64_t l = 0; l < width; ++l) y[l] = as_number<T>(value[l]);
    for (std::int64_t l = 0; l < width; ++l) whole[l] = static_cast<std::int32_t>(place[l]);
    for (std::int64_t l = 0; l < width; ++l) winners[l] = static_cast<Winner>(whole[l]);
  }
};

template <LayerNumber T, class Winner>
[[gnu::always_inline]] inline void maximum_two_by_two(const Plane& p, const T* __restrict x, T* __restrict y,
                                                      Winner* __restrict winners) {
  const std::int64_t right = p.lanes, below = p.width * p.lanes;
  each_output(p, [&](const WindowPart& window, std::int64_t out, std::int64_t lane, auto width) RONDA_INLINE {
    const T* corner = x + p.input_at(window.top, window.left) + lane;
    Maximum maximum;
    maximum.start(corner, 0, width);
    maximum.take(corner + right, 1, width);
    maximum.take(corner + below, 2, width);
    maximum.take(corner + below + right, 3, width);
    maximum.store(y + out, winners + out, p.relu, width);
  });
}

template <LayerNumber T, class Winner>
[[gnu::always_inline]] inline void maximum_image(const Plane& p, const T* __restrict x, T* __restrict y,
                                                 Winner* __restrict winners) {
  if (p.two_by_two) return maximum_two_by_two(p, x, y, winners);
  each_output(p, [&](const WindowPart& window, std::int64_t out, std::int64_t lane, auto width) RONDA_INLINE {
    Maximum maximum;
    maximum.start(x + p.input_at(window.top + window.kh_begin, window.left + window.kw_begin) + lane,
                  static_cast<float>(window.kh_begin * p.kernel.width + window.kw_begin), width);
    each_in_window(p, window,
                   [&](std::int64_t in, float place) RONDA_INLINE { maximum.take(x + in + lane, place, width); });
    maximum.store(y + out, winners + out, p.relu, width);
  });
}

/// The gradient of up to 16 lanes, and where it belongs.
struct Gradient {
  float value[16];
  float place[16];

  template <LayerNumber T, class Winner, class Width>
  [[gnu::always_inline]] Gradient(const T* __restrict dy, const Winner* __restrict winners, Width width) {
    each_lane(width, [&](std::int64_t l) RONDA_INLINE { value[l] = as_float(dy[l]); });
    each_lane(width, [&](std::int64_t l) RONDA_INLINE { place[l] = static_cast<float>(winners[l]); });
  }
  template <LayerNumber T, class Width>
  [[gnu::always_inline]] void put(T* __restrict dx, float at, Width width) const {
    each_lane(width, [&](std::int64_t l) RONDA_INLINE { dx[l] = as_number<T>(place[l] == at ? value[l] : 0.0F); });
  }
  template <class Width>
  [[gnu::always_inline]] void add(float* __restrict dx, float at, Width width) const {
    each_lane(width, [&](std::int64_t l) RONDA_INLINE { dx[l] += place[l] == at ? value[l] : 0.0F; });
  }
};

/// 2×2 windows side by side: every element is written once; what an odd extent leaves over gets 0.
template <LayerNumber T>
[[gnu::always_inline]] inline void maximum_backward_two_by_two(const Plane& p, const T* __restrict dy,
                                                               const std::uint8_t* __restrict winners,
                                                               T* __restrict dx) {
  const std::int64_t right = p.lanes, below = p.width * p.lanes;
  each_output(p, [&](const WindowPart& window, std::int64_t out, std::int64_t lane, auto width) RONDA_INLINE {
    T* corner = dx + p.input_at(window.top, window.left) + lane;
    const Gradient gradient(dy + out, winners + out, width);
    gradient.put(corner, 0, width);
    gradient.put(corner + right, 1, width);
    gradient.put(corner + below, 2, width);
    gradient.put(corner + below + right, 3, width);
  });
  const std::int64_t covered_height = 2 * p.out_height, covered_width = 2 * p.out_width;
  for (std::int64_t h = 0; h < covered_height; ++h)
    std::fill(dx + p.input_at(h, covered_width), dx + p.input_at(h, p.width), T{});
  std::fill(dx + p.input_at(covered_height, 0), dx + p.input_at(p.height, 0), T{});
}

template <LayerNumber T, class Winner>
[[gnu::always_inline]] inline void maximum_backward(const Plane& p, const T* __restrict dy,
                                                    const Winner* __restrict winners, float* __restrict dx) {
  std::fill_n(dx, p.input_at(p.height, 0), 0.0F);
  each_output(p, [&](const WindowPart& window, std::int64_t out, std::int64_t lane, auto width) RONDA_INLINE {
    const Gradient gradient(dy + out, winners + out, width);
    each_in_window(p, window,
                   [&](std::int64_t in, float place) RONDA_INLINE { gradient.add(dx + in + lane, place, width); });
  });
}

template <bool relu, LayerNumber T>
[[gnu::always_inline]] inline void average_windows(const Plane& p, const T* __restrict x, T* __restrict y) {
  each_output(p, [&](const WindowPart& window, std::int64_t out, std::int64_t lane, auto width) RONDA_INLINE {
    double total[16] = {};
    float sum[16] = {};
    std::int64_t count = 0;
    each_in_window(p, window, [&](std::int64_t in, float) RONDA_INLINE {
      each_lane(width, [&](std::int64_t l) RONDA_INLINE {
        const float value = as_float(x[in + lane + l]);
        sum[l] += relu ? rectified(value) : value;
      });
      if (++count % sum_block != 0) return;
      each_lane(width, [&](std::int64_t l) RONDA_INLINE { total[l] += double{sum[l]}; });
      each_lane(width, [&](std::int64_t l) RONDA_INLINE { sum[l] = 0; });
    });
    const float area = window.area();
    each_lane(width, [&](std::int64_t l) RONDA_INLINE {
      y[out + l] = as_number<T>(static_cast<float>(total[l] + double{sum[l]}) / area);
    });
  });
}

template <LayerNumber T>
[[gnu::always_inline]] inline void average_loop(const Plane& p, const T* __restrict x, T* __restrict y) {
  p.relu ? average_windows<true>(p, x, y) : average_windows<false>(p, x, y);
}

template <LayerNumber T>
[[gnu::always_inline]] inline void average_backward_loop(const Plane& p, const T* __restrict dy, float* __restrict dx) {
  std::fill_n(dx, p.input_at(p.height, 0), 0.0F);
  each_output(p, [&](const WindowPart& window, std::int64_t out, std::int64_t lane, auto width) RONDA_INLINE {
    const float area = window.area();
    each_in_window(p, window, [&](std::int64_t in, float) RONDA_INLINE {
      each_lane(width, [&](std::int64_t l) RONDA_INLINE { dx[in + lane + l] += as_float(dy[out + l]) / area; });
    });
  });
}

// One image, for each type of number and of winner.

using Half = BFloat16;
RONDA_MULTIVERSION void maximum_of(const Plane& p, const float* x, float* y, std::uint8_t* winners) {
  maximum_image(p, x, y, winners);
}
RONDA_MULTIVERSION void maximum_of(const Plane& p, const float* x, float* y, std::int32_t* winners) {
  maximum_image(p, x, y, winners);
}
RONDA_MULTIVERSION void maximum_of(const Plane& p, const Half* x, Half* y, std::uint8_t* winners) {
  maximum_image(p, x, y, winners);
}
RONDA_MULTIVERSION void maximum_of(const Plane& p, const Half* x, Half* y, std::int32_t* winners) {
  maximum_image(p, x, y, winners);
}
RONDA_MULTIVERSION void two_by_two_backward(const Plane& p, const float* dy, const std::uint8_t* winners, float* dx) {
  maximum_backward_two_by_two(p, dy, winners, dx);
}
RONDA_MULTIVERSION void two_by_two_backward(const Plane& p, const Half* dy, const std::uint8_t* winners, Half* dx) {
  maximum_backward_two_by_two(p, dy, winners, dx);
}
RONDA_MULTIVERSION void maximum_backward_of(const Plane& p, const float* dy, const std::uint8_t* winners, float* dx) {
  maximum_backward(p, dy, winners, dx);
}
RONDA_MULTIVERSION void maximum_backward_of(const Plane& p, const float* dy, const std::int32_t* winners, float* dx) {
  maximum_backward(p, dy, winners, dx);
}
RONDA_MULTIVERSION void maximum_backward_of(const Plane& p, const Half* dy, const std::uint8_t* winners, float* dx) {
  maximum_backward(p, dy, winners, dx);
}
RONDA_MULTIVERSION void maximum_backward_of(const Plane& p, const Half* dy, const std::int32_t* winners, float* dx) {
  maximum_backward(p, dy, winners, dx);
}
RONDA_MULTIVERSION void average_image(const Plane& p, const float* x, float* y) { average_loop(p, x, y); }
RONDA_MULTIVERSION void average_image(const Plane& p, const Half* x, Half* y) { average_loop(p, x, y); }
RONDA_MULTIVERSION void average_backward(const Plane& p, const float* dy, float* dx) {
  average_backward_loop(p, dy, dx);
}
RONDA_MULTIVERSION void average_backward(const Plane& p, const Half* dy, float* dx) {
  average_backward_loop(p, dy, dx);
}

Plane plane_of(const PoolSpec& spec, const Images& in, const Images& out, bool relu) {
  return {in.height,   in.width,    in.lanes,     out.height, out.width,
          spec.kernel, spec.stride, spec.padding, relu,       is_two_by_two(spec)};
}

}  // namespace

Pooling::Pooling(const PoolSpec& spec, const Images& input, const Shape& output, bool relu)
    : spec_(spec), input_(input), output_(input), relu_(relu) {
  output_.height = output[1];
  output_.width = output[2];
}

std::size_t Pooling::winner_bytes() const noexcept {
  if (spec_.kind == PoolKind::average) return 0;
  return output_.count() * static_cast<std::size_t>(output_.image_size()) * (is_wide() ? sizeof(std::int32_t) : 1);
}

bool Pooling::is_direct() const noexcept { return spec_.kind == PoolKind::maximum && is_two_by_two(spec_); }

std::size_t Pooling::scratch_bytes(DType dtype, int threads) const noexcept {
  if (dtype == DType::float32 || is_direct()) return 0;
  return static_cast<std::size_t>(threads * input_.image_size()) * sizeof(float);
}

template <LayerNumber T>
void Pooling::forward(const T* x, T* y, std::byte* winners, int threads) const {
  const Plane plane = plane_of(spec_, input_, output_, relu_);
  parallel_for(threads, input_.count(), [&](Range images) {
    for (auto image = static_cast<std::int64_t>(images.begin); image < static_cast<std::int64_t>(images.end); ++image) {
      const T* from = x + image * input_.image_size();
      const std::int64_t at = image * output_.image_size();
      if (spec_.kind == PoolKind::average)
        average_image(plane, from, y + at);
      else if (is_wide())
        maximum_of(plane, from, y + at, reinterpret_cast<std::int32_t*>(winners) + at);
      else
        maximum_of(plane, from, y + at, reinterpret_cast<std::uint8_t*>(winners) + at);
    }
  });
}

template <LayerNumber T>
void Pooling::backward(const T* dy, const std::byte* winners, T* dx, std::byte* scratch, int threads) const {
  const Plane plane = plane_of(spec_, input_, output_, relu_);
  const auto sum = [&](std::int64_t at, float* to) {
    if (spec_.kind == PoolKind::average)
      average_backward(plane, dy + at, to);
    else if (is_wide())
      maximum_backward_of(plane, dy + at, reinterpret_cast<const std::int32_t*>(winners) + at, to);
    else
      maximum_backward_of(plane, dy + at, reinterpret_cast<const std::uint8_t*>(winners) + at, to);
  };
  const auto one = [&](std::int64_t image, float* sums) {
    const std::int64_t at = image * output_.image_size(), size = input_.image_size();
    T* to = dx + image * size;
    if (is_direct())
      return two_by_two_backward(plane, dy + at, reinterpret_cast<const std::uint8_t*>(winners) + at, to);
    if constexpr (std::same_as<T, float>) {
      sum(at, to);
    } else {
      sum(at, sums);
      convert(sums, to, static_cast<std::size_t>(size));
    }
  };
  const auto workers = static_cast<std::size_t>(threads);
  parallel_for(threads, workers, [&](Range range) {
    for (std::size_t worker = range.begin; worker < range.end; ++worker) {
      const Range images = part_of(input_.count(), worker, workers);
      float* sums = reinterpret_cast<float*>(scratch) + static_cast<std::int64_t>(worker) * input_.image_size();
      for (std::size_t image = images.begin; image < images.end; ++image) one(static_cast<std::int64_t>(image), sums);
    }
  });
}

template void Pooling::forward(const float*, float*, std::byte*, int) const;
template void Pooling::forward(const Half*, Half*, std::byte*, int) const;
template void Pooling::backward(const float*, const std::byte*, float*, std::byte*, int) const;
template void Pooling::backward(const Half*, const std::byte*, Half*, std::byte*, int) const;

}  // namespace ronda::onednn
