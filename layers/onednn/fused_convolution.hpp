#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include <ronda/layers/onednn/computation.hpp>
#include <ronda/layers/onednn/images.hpp>
#include <ronda/layers/primitives.hpp>

namespace ronda::onednn {

/// A convolution of few input channels with its bias, ReLU and max-pooling in one pass, and the gradient of its
/// weights.
///
/// What lies between such a convolution and its pooling is many times as large as what goes in and what comes out, and
/// takes longer to write and to read than to compute. Here it stays in registers: for sixteen output channels and one
/// window, the kernel's sums at the window's places, their maximum, and where that was. The gradient
///
///     dw[o, kh, kw, c]  =  sum over windows of  dy[window, o] · x[winner's place + (kh, kw), c]
///
/// is summed up in registers too, sixteen output channels at once: each place of a window takes the gradients of those
/// that it is the winner of, and zeros for the others. All of it in float32, from and to numbers of the layers' type.
class FusedConvolution {
 public:
  static constexpr std::int64_t most_channels = 8;  ///< of the input; above, a vector of them is better

  /// Empty where it cannot be done: it takes images whose channels lie together, output channels that lie together in
  /// eights, and maxima over windows without padding, with places in a byte.
  static std::unique_ptr<FusedConvolution> make(const Runtime& runtime, const ConvolutionProblem& spec,
                                                const TensorDesc& convolved, const TensorDesc& weight);

  /// @param bias     null without
  /// @param winners  place of each maximum in its window, as Pooling has them
  template <LayerNumber T>
  void forward(const T* x, const T* w, const T* bias, T* y, std::uint8_t* winners, std::byte* scratch);
  /// @param dy  the gradient of the pooled output, 0 where ReLU was
  template <LayerNumber T>
  void backward_weights(const T* x, const T* dy, const std::uint8_t* winners, T* dw, std::byte* scratch);

  [[nodiscard]] std::size_t scratch_bytes() const noexcept { return scratch_bytes_; }

  /// One run on memory of its own.
  [[nodiscard]] std::function<void()> forward_rehearsal();
  [[nodiscard]] std::function<void()> weights_rehearsal();

  /// What the loops over one sample know. Steps in elements, of an input that is padded already.
  struct Windows {
    std::int64_t rows, row;                  ///< of the kernel; elements of one of them, which lie together
    std::int64_t below;                      ///< from a row of the input to the next
    std::int64_t height, width, lanes;       ///< of the pooled output
    std::int64_t next_eight;                 ///< from eight of its channels to the other eight of a sixteen
    std::int64_t window_down, window_right;  ///< from a window to the next
    std::int64_t places;                     ///< in a window
    std::array<std::int64_t, 256> place_at;  ///< from a window's start
    bool relu;
  };

 private:
  FusedConvolution(const Runtime& runtime, const ConvolutionProblem& spec, const Images& input, const Images& convolved,
                   const TensorDesc& weight);

  struct Rehearsal;
  template <LayerNumber T>
  [[nodiscard]] std::shared_ptr<Rehearsal> make_rehearsal() const;

  /// Calls body(sample, its padded input, worker) for all samples, in parts, one a worker.
  template <LayerNumber T, class Body>
  void each_sample(const T* x, std::byte* scratch, Body&& body) const;
  template <LayerNumber T>
  const float* padded(const T* sample, float* into) const;
  void forward_in_patches(const float* x, float* y, std::uint8_t* winners, std::byte* scratch) const;
  template <LayerNumber T>
  void add_windows(const Windows& windows, const float* x, const T* dy, const std::uint8_t* winners, float* sums,
                   std::byte* of_patches) const;
  [[nodiscard]] Windows rows_of_windows(std::int64_t rows) const;
  [[nodiscard]] std::int64_t output_at(std::int64_t sample, std::int64_t sixteen) const;
  [[nodiscard]] std::int64_t output_row(std::int64_t sample, std::int64_t row) const;
  [[nodiscard]] double* totals(std::byte* scratch, std::size_t worker) const;
  /// Of a sixteen: sixteen, or eight in the last.
  [[nodiscard]] std::int64_t channels_of(std::int64_t sixteen) const;
  [[nodiscard]] float* floats(std::byte* scratch, std::size_t offset) const {
    return reinterpret_cast<float*>(scratch + offset);
  }

  int threads_;
  ConvolutionProblem spec_;
  Images input_, pooled_;
  Windows windows_;
  bool in_patches_;                       ///< by the loops of patches.hpp
  std::int64_t channels_;                 ///< of the output, in eights
  std::int64_t sixteens_;                 ///< of them
  std::int64_t weights_of_sixteen_;       ///< elements
  Kernel to_parameter_, from_parameter_;  ///< between (o/16, kh, kw, c, 16) and the parameter's layout
  std::size_t parameter_bytes_;
  std::size_t totals_offset_, bias_offset_, padded_offset_, padded_bytes_, sums_offset_, sums_bytes_, taps_offset_,
      patches_offset_, patches_bytes_ = 0, scratch_bytes_;
};

}  // namespace ronda::onednn
