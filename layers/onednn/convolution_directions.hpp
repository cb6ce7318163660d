#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ronda/layers/onednn/fused_convolution.hpp>
#include <ronda/layers/onednn/memory_desc.hpp>
#include <ronda/layers/onednn/operations.hpp>
#include <ronda/layers/onednn/pooling.hpp>
#include <ronda/layers/onednn/sums.hpp>
#include <ronda/layers/onednn/winners.hpp>
#include <ronda/layers/onednn/winograd.hpp>

namespace ronda::onednn {

struct ConvolutionWay;  // a candidate of the library's

/// What a convolution's pooling gives, in the layout of what it is given.
[[nodiscard]] TensorDesc pooled(const ConvolutionProblem& spec, const TensorDesc& convolved);
/// A convolution's pooling, with its ReLU.
[[nodiscard]] Pooling pooling_of(const ConvolutionProblem& spec, const TensorDesc& convolved);

/// A convolution without its ReLU, and how each direction of it is computed.
/// forward: (x, w, b) → y; backward_weights: (x, dz) → dw; backward_data: (dz, w) → dx.
class ConvolutionDirections {
 public:
  /// Asks the picker about each.
  /// @param runtime, spec  outlive this
  ConvolutionDirections(const Runtime& runtime, const ConvolutionProblem& spec, const OperationContext& context);

  /// How a direction is computed. Neither: it is not needed, or `winners` or `fused` computes it.
  struct Direction {
    std::unique_ptr<Computation> library;
    bool in_tiles = false;                ///< `tiles` computes it
    const ConvolutionWay* way = nullptr;  ///< the way of `library`
  };
  /// Whether it takes the gradient of the convolution itself, not of its pooled output.
  static bool spreads(const Direction& direction) { return direction.library || direction.in_tiles; }

  Direction forward, backward_weights, backward_data;  ///< `backward_weights` is for one part of the sum
  std::unique_ptr<WinnerGradients> winners;
  std::unique_ptr<FusedConvolution> fused;
  std::unique_ptr<Winograd> tiles;
  bool forward_is_fused = false;  ///< `fused` does what `forward` and the pooling would
  TensorDesc output, weight;
  std::string picks;

  [[nodiscard]] std::size_t scratch_bytes() const;

  /// The gradient of the weights, computed by the library.
  /// @param dz  gradient of the convolution's output before pooling
  void write_weight_gradient(const std::byte* x, const std::byte* dz, std::byte* dw, std::byte* scratch) const;

 private:
  [[nodiscard]] dnnl::memory::desc image(const Shape& shape, const ConvolutionWay& way) const;
  /// Of the output: plain where parts of it are added up over ranks, which may pick other ways, but have one layout.
  [[nodiscard]] dnnl::memory::desc output_image(const ConvolutionWay& way, const Shape& shape) const;
  [[nodiscard]] bool is_summed() const { return spec_.sums == SumOverRanks::output; }
  [[nodiscard]] DType dtype() const { return spec_.input.dtype; }
  /// As the library has it: with an axis of its own for the groups, if there are some. The bytes of rows are the same.
  [[nodiscard]] Shape library_weight() const;
  [[nodiscard]] dnnl::memory::desc any_weight() const { return any_layout(library_weight(), Axes::weight, dtype()); }
  /// The forward primitive's choice, or rows where other operations read it too, or where there are groups, whose
  /// blocks no Layout names: then each reorders it.
  [[nodiscard]] dnnl::memory::desc given_weight(const dnnl::memory::desc& chosen) const;
  /// A part of a batch that is computed as a convolution of its own: some samples, or some pixels of one.
  struct Part {
    Shape in, out;
    adapter::Window window;
  };
  [[nodiscard]] Part whole() const { return {spec_.input.shape, output_shape_, window_}; }
  [[nodiscard]] Part part_of_samples(std::int64_t samples) const;
  [[nodiscard]] Part part_of_pixels() const;
  [[nodiscard]] dnnl::convolution_forward::primitive_desc describe_forward(const ConvolutionWay& way,
                                                                           const Part& part) const;
  /// Decides the layout of the output, and mostly of the weights, for good.
  void choose_forward(Picker& picker);
  std::unique_ptr<Computation> make_forward(const ConvolutionWay& way) const;
  /// Into the layout of the weights directly where that is no fallback, through a reorder where it is.
  std::unique_ptr<Computation> make_backward_weights(const ConvolutionWay& way, const Part& part) const;
  [[nodiscard]] bool is_cut() const { return pixels_of_part_ != 0; }
  [[nodiscard]] std::int64_t parts_down() const {
    return (output_shape_[1] + pixels_of_part_.height - 1) / pixels_of_part_.height;
  }
  [[nodiscard]] std::int64_t parts_across() const {
    return (output_shape_[2] + pixels_of_part_.width - 1) / pixels_of_part_.width;
  }
  [[nodiscard]] std::size_t copied_bytes() const;
  void run_pixels(std::int64_t part, const float* x, const float* dz, float* dw, std::byte* scratch) const;
  void choose_backward_weights(Picker& picker, const std::string& layouts, const std::function<void()>& spreading);
  std::unique_ptr<Computation> make_backward_data(const ConvolutionWay& way) const;
  template <class Description>
  std::unique_ptr<Computation> computation(const Description& description, const dnnl::primitive& primitive,
                                           std::vector<Computation::Argument> inputs,
                                           const Computation::Argument& result) const;
  /// Our own candidates, on every rank, whether they can run here or not.
  /// @param before  what has to be done before tiles
  [[nodiscard]] std::vector<Candidate> ours(std::function<void()> winners_run, std::function<void()> tiles_run,
                                            const std::function<void()>& before, bool backward = true) const;
  [[nodiscard]] bool behind_maximum() const { return spec_.pool && spec_.pool->kind == PoolKind::maximum; }
  /// Of few input channels: whether convolution and pooling are one.
  bool choose_fused(Picker& picker);
  [[nodiscard]] std::function<void()> apart_rehearsal() const;
  /// Of gradients over the windows that they belong to, which the library's ways need done.
  [[nodiscard]] std::function<void()> spreading_rehearsal() const;
  /// Of what tiles do themselves, and the library's ways need done: the ReLU, or the pooling with its ReLU.
  [[nodiscard]] std::function<void()> finishing_rehearsal() const;
  /// The picker's choice among the ways; the last resort only counts where there is no other.
  /// @param before  as `pick` has it
  /// @param told    of it, in the question
  /// @param plain   Candidate::counts of the ways with images in NHWC
  template <class Make>
  Direction choose(Picker& picker, const char* direction, const std::string& layouts, Make&& make,
                   std::span<const Candidate> ours, const std::function<void()>& before,
                   const char* told = " with spreading", double plain = 1, std::size_t times = 1);
  [[nodiscard]] std::string text() const;
  /// Part of the question, since it decides which ways there are.
  [[nodiscard]] std::string pooling() const;

  SumParts parts_of_sum_;                     ///< parts of the samples, or of the output rectangles of all samples
  HeightWidth pixels_of_part_ = 0;            ///< size of an output rectangle; 0: parts are whole samples
  HeightWidth inputs_of_part_ = 0;            ///< size of the input that an output rectangle depends on
  std::unique_ptr<Computation> rest_of_sum_;  ///< the weights' gradient of the last part, if it is shorter

  const Runtime& runtime_;
  const ConvolutionProblem& spec_;
  Shape output_shape_;
  adapter::Window window_;
  bool shared_weight_;
  dnnl::memory::desc x_, w_, bias_, y_;  ///< as the caller's bytes lie
};

}  // namespace ronda::onednn
