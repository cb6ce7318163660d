#pragma once
#include <cstdint>

#include <ronda/core/host_device.hpp>
#include <ronda/layers/cudnn/run.hpp>
#include <ronda/layers/primitives.hpp>

namespace ronda::cudnn {

// A convolution as a product of matrices. Each place of the output has a row of what lies in its window, the patch:
// (rows, kernel height · kernel width · channels). Chellapilla, Puri and Simard 2006.

/// Windows along one direction of an image.
struct PatchDirection {
  std::uint32_t extent, places, kernel, stride, padding, dilation;
};

/// Images (N, height, width, channels), and their windows.
struct PatchGeometry {
  PatchDirection vertical, horizontal;
  std::uint32_t channels;  ///< in runs

  /// With runs of one number.
  explicit PatchGeometry(const ConvolutionProblem& problem)
      : vertical(direction(problem.input.shape[1], convolution_output(problem)[1], problem.kernel.height,
                           problem.stride.height, problem.padding.height, problem.dilation.height)),
        horizontal(direction(problem.input.shape[2], convolution_output(problem)[2], problem.kernel.width,
                             problem.stride.width, problem.padding.width, problem.dilation.width)),
        channels(static_cast<std::uint32_t>(problem.input.shape[3])) {}
  [[nodiscard]] std::int64_t runs_a_patch() const {
    return std::int64_t{vertical.kernel} * horizontal.kernel * channels;
  }
  [[nodiscard]] std::int64_t rows_an_image() const { return std::int64_t{vertical.places} * horizontal.places; }
  [[nodiscard]] std::int64_t runs_an_image() const {
    return std::int64_t{vertical.extent} * horizontal.extent * channels;
  }

 private:
  static PatchDirection direction(std::int64_t extent, std::int64_t places, std::int64_t kernel, std::int64_t stride,
                                  std::int64_t padding, std::int64_t dilation) {
    const auto narrow = [](std::int64_t number) { return static_cast<std::uint32_t>(number); };
    return {narrow(extent), narrow(places), narrow(kernel), narrow(stride), narrow(padding), narrow(dilation)};
  }
};

/// A call for one run of the patches.
template <int width>
struct Patches {
  PatchGeometry geometry;
  const Run<float, width>* x;
  Run<float, width>* patches;
  RONDA_HOST_DEVICE void operator()(std::int64_t i) const {
    const PatchDirection &v = geometry.vertical, &h = geometry.horizontal;
    const ImagePlace in_patch = place_of(i, v.kernel, h.kernel, geometry.channels),
                     patch = place_of(in_patch.n, v.places, h.places, 1);
    const std::int64_t row = patch.row * v.stride + in_patch.row * v.dilation - v.padding,
                       column = patch.column * h.stride + in_patch.column * h.dilation - h.padding;
    const bool inside = row >= 0 && row < v.extent && column >= 0 && column < h.extent;
    patches[i] = inside ? x[((patch.n * v.extent + row) * h.extent + column) * geometry.channels + in_patch.run]
                        : Run<float, width>{};
  }
};

/// The gradients of images from those of their patches, a call for one run of the images: it adds up, in one order,
/// what lies at its place in any patch, so nobody adds to another's.
template <int width>
struct PatchSums {
  PatchGeometry geometry;
  const Run<float, width>* patches;
  Run<float, width>* dx;
  RONDA_HOST_DEVICE void operator()(std::int64_t i) const {
    const PatchDirection &v = geometry.vertical, &h = geometry.horizontal;
    const ImagePlace at = place_of(i, v.extent, h.extent, geometry.channels);
    Run<float, width> sum{};
    for (std::uint32_t kh = 0; kh < v.kernel; ++kh) {
      const std::uint32_t oh = window_of(v, static_cast<std::uint32_t>(at.row), kh);
      for (std::uint32_t kw = 0; kw < h.kernel && oh < v.places; ++kw) {
        const std::uint32_t ow = window_of(h, static_cast<std::uint32_t>(at.column), kw);
        if (ow >= h.places) continue;
        const std::int64_t patch = (at.n * v.places + oh) * h.places + ow;
        const auto more = patches[((patch * v.kernel + kh) * h.kernel + kw) * geometry.channels + at.run];
        for (int k = 0; k < width; ++k) number(sum, k) += number(more, k);
      }
    }
    dx[i] = sum;
  }

 private:
  /// The place whose window has the element at `at` in `of_kernel`; beyond the last where there is none.
  [[nodiscard]] static RONDA_HOST_DEVICE std::uint32_t window_of(const PatchDirection& along, std::uint32_t at,
                                                                 std::uint32_t of_kernel) {
    const std::uint32_t from = at + along.padding - of_kernel * along.dilation;  // wraps around below 0
    return from % along.stride == 0 && from < along.extent + 2 * along.padding ? from / along.stride : along.places;
  }
};

}  // namespace ronda::cudnn
