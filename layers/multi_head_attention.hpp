#pragma once
#include <string>
#include <utility>

#include <ronda/layers/layer.hpp>

namespace ronda {

struct MultiHeadAttentionOptions {
  bool causal = false;  ///< a step reads itself and the steps before it alone: a decoder
  double dropout = 0;   ///< of the weights of the mean, in training, as a Dropout's
  bool bias = true;     ///< of both projections
  /// A field of the batch, int32, with how many steps of each sample there are: what lies behind them is padding, and
  /// is not read. Empty: all steps are read. As PyTorch's key_padding_mask, where padding is behind; a sample of length
  /// 0 becomes zeros before the last projection.
  std::string lengths = {};
};

/// Self-attention of (N, T, width): each step becomes a mean of all steps' values, weighted by how its query fits their
/// keys, in each head by itself: softmax(Q · Kᵀ / √d) · V, d = width / heads, between two dense projections (Vaswani et
/// al., "Attention is all you need", NeurIPS 2017). As PyTorch's MultiheadAttention(width, heads, batch_first = True)
/// of query = key = value, with its parameters: `attention1.in_proj_weight` (3 · width, width), whose thirds give
/// queries, keys and values, `.in_proj_bias`, `.out_proj.weight` (width, width), `.out_proj.bias`.
///
/// Scores are never in memory as a whole: forward and backward compute some rows of them at a time. Where it is causal,
/// what lies behind a step does not reach it, not even NaN; but in training large projections may mix the roundings,
/// and NaN, of neighbours (`onednn::Strassen`). For the processor, in float32.
class MultiHeadAttention final : public Layer {
 public:
  /// Building throws InputError for inputs that are no (N, T, width), for a width that `heads` do not divide, and for a
  /// field of lengths that there is not. A step throws InputError for a length that is not from 0 to T.
  explicit MultiHeadAttention(std::int64_t heads, MultiHeadAttentionOptions options = {})
      : spec_{.heads = heads, .causal = options.causal, .dropout = options.dropout},
        bias_(options.bias),
        lengths_(std::move(options.lengths)) {}
  [[nodiscard]] std::string_view kind() const noexcept override { return "attention"; }
  Value build(Value x, GraphBuilder& builder) const override;

 private:
  AttentionSpec spec_;
  bool bias_;
  std::string lengths_;
};

}  // namespace ronda
