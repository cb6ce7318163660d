#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <ronda/layers/onednn/computation.hpp>
#include <ronda/layers/onednn/images.hpp>
#include <ronda/layers/onednn/sums.hpp>
#include <ronda/layers/onednn/winner_kernels.hpp>
#include <ronda/layers/primitives.hpp>

namespace ronda::onednn {

/// Gradients of a convolution behind a max-pool and ReLU, from the winners alone.
///
/// Of a 2×2 window one element in four gets a gradient, and behind ReLU about half of those: where a dense primitive
/// multiplies mostly with zeros, this takes each winner for itself. The winner at (n, h, w) of output channel o with
/// gradient g adds
///
///     g · x[n, h + kh, w + kw, :]  to  dw[o, :, kh, kw]      and      g · w[o, :, kh, kw]  to  dx[n, h + kh, w + kw,
///     :]
///
/// in vectors of 16 input channels, summed in float32, list by list. The kernel² sums stay in registers for the length
/// of a list of winners. A list has the winners of one output channel for dw, of one place of one window for dx.
class WinnerGradients {
 public:
  /// Empty where it cannot be done: it takes kernels of 3 and 5 without padding, input channels that lie together in
  /// sixteens (with AVX2, kernels of 3 in float32, in eights), and places of winners in a byte.
  static std::unique_ptr<WinnerGradients> make(const Runtime& runtime, const ConvolutionProblem& spec,
                                               const TensorDesc& convolved, const TensorDesc& weight);

  /// @param dy  the gradient of the pooled output, 0 where ReLU was
  template <LayerNumber T>
  void backward_weights(const T* x, const T* dy, const std::uint8_t* winners, T* dw, std::byte* scratch);
  template <LayerNumber T>
  void backward_data(const T* dy, const std::uint8_t* winners, const T* w, T* dx, std::byte* scratch);

  [[nodiscard]] std::size_t scratch_bytes() const noexcept { return scratch_bytes_; }

  /// One run on memory of its own, with as many winners as training has: half of the windows, at random places.
  [[nodiscard]] std::function<void()> weights_rehearsal();
  [[nodiscard]] std::function<void()> data_rehearsal();

  /// A winner: its gradient, and where the operands that it is multiplied with start.
  struct Winner {
    float gradient;
    std::int32_t offset;
  };

 private:
  WinnerGradients(const Runtime& runtime, const ConvolutionProblem& spec, const Images& input, const Images& convolved,
                  const TensorDesc& weight);

  struct Rehearsal;
  template <LayerNumber T>
  [[nodiscard]] std::shared_ptr<Rehearsal> make_rehearsal() const;

  template <LayerNumber T>
  std::size_t list_channel(Range samples, std::int64_t channel, const T* dy, const std::uint8_t* winners,
                           Winner* list) const;
  template <LayerNumber T>
  void add_channels(Range channels, Range samples, const T* x, const T* dy, const std::uint8_t* winners, float* sums,
                    Winner* list) const;
  /// @param sums  of the sample's input gradient
  template <LayerNumber T>
  void add_sample(std::int64_t sample, const T* dy, const std::uint8_t* winners, const float* weights, float* sums,
                  Winner* lists) const;

  /// Whether the loops of winner_kernels.hpp take it, in float32.
  [[nodiscard]] bool is_marked() const noexcept { return loops_ != nullptr; }
  void add_marked_channels(Range vectors, Range samples, const float* x, const float* dy, const std::uint8_t* winners,
                           float* sums) const;
  [[nodiscard]] winner_loops::Geometry geometry() const;
  void plan_marks();

  [[nodiscard]] std::int64_t window_at(std::int64_t i, std::int64_t j) const;
  [[nodiscard]] std::int64_t input_block(std::int64_t block) const;
  [[nodiscard]] float* weights_of(std::byte* scratch) const { return reinterpret_cast<float*>(scratch); }
  [[nodiscard]] Winner* lists_of(std::byte* scratch, std::size_t worker) const {
    return reinterpret_cast<Winner*>(scratch + weight_bytes_) + worker * list_length_;
  }
  [[nodiscard]] float* sums_of_sample(std::byte* scratch, std::size_t worker) const {
    return reinterpret_cast<float*>(scratch + sums_offset_) + worker * static_cast<std::size_t>(sample_size());
  }
  [[nodiscard]] std::int64_t sample_size() const { return input_.groups * input_.image_size(); }
  [[nodiscard]] std::int64_t pooled_size() const { return pooled_.groups * pooled_.image_size(); }

  int threads_;
  ConvolutionProblem spec_;
  const winner_loops::Loops* loops_;
  Images input_, convolved_, pooled_;
  std::int64_t blocks_, taps_,
      places_;  ///< sixteens of input channels, elements of the kernel, places in a window of the pool
  std::array<std::int32_t, 256> place_at_{};  ///< offset in the input of a place in a window
  std::vector<std::int32_t> windows_at_;      ///< of all windows; these three are of winner_kernels.hpp
  std::vector<std::int64_t> inputs_at_, outputs_at_;
  SumParts parts_;                        ///< parts of the samples, in weight gradients
  std::size_t group_;                     ///< samples whose winners make one list: their input stays in cache
  Kernel to_parameter_, from_parameter_;  ///< between (o, c/16, kh, kw, 16) and the parameter's layout
  std::size_t parameter_bytes_, weight_bytes_, list_length_, sums_offset_, parts_offset_, scratch_bytes_;
};

}  // namespace ronda::onednn
