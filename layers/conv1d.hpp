#pragma once
#include <ronda/layers/layer.hpp>
#include <ronda/layers/same_padding.hpp>

namespace ronda {

struct Conv1dOptions {
  std::int64_t stride = 1;
  std::int64_t padding = 0;   ///< zeros before and behind the sequence; or `same_padding`
  std::int64_t dilation = 1;  ///< steps from an element of the kernel to the next
  /// The channels of input and output in so many parts: each part of the outputs sees its part of the input alone. As
  /// many as the input has channels is a depthwise convolution.
  std::int64_t groups = 1;
  bool bias = true;
};

/// Cross-correlation of sequences (N, T, C), as embeddings give them: weight (outputs, C / groups, kernel) and bias
/// (outputs), as PyTorch's Conv1d, whose sequences are (N, C, T). It computes as a Conv2d does with a kernel of one
/// row.
///
///     Conv1d(32, 5)                                                   // (N, T, C) becomes (N, T - 4, 32)
///     Conv1d(32, 5, {.padding = same_padding, .dilation = 2})         // (N, T, 32)
///     Conv1d(64, 3, {.stride = 2, .padding = 1, .groups = 32})
class Conv1d final : public Layer {
 public:
  /// Throws InputError for `same_padding` with a stride. What does not fit the input is told when the model is built.
  explicit Conv1d(std::int64_t outputs, std::int64_t kernel, const Conv1dOptions& options = {});
  [[nodiscard]] std::string_view kind() const noexcept override { return "conv"; }
  Value build(Value x, GraphBuilder& builder) const override;

 private:
  ConvolutionSpec spec_;
};

}  // namespace ronda
