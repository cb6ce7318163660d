#pragma once
#include <string>
#include <utility>

#include <ronda/layers/layer.hpp>

namespace ronda {

struct MultiHeadAttentionOptions {
  bool causal = false;  ///< a step attends only to itself and to earlier steps: a decoder
  double dropout = 0;   ///< dropout probability of the attention weights, in training
  bool bias = true;     ///< of both projections
  /// Name of an int32 field of the batch with the number of steps of each sample; later steps are padding and are not
  /// read. Empty: all steps are read. As PyTorch's key_padding_mask with padding at the end; a sample of length 0
  /// becomes zeros before the last projection.
  std::string lengths = {};
};

/// Self-attention of (N, T, width): each step becomes a mean of all steps' values, weighted by the products of its
/// query with their keys, separately in each head: softmax(Q · Kᵀ / √d) · V, d = width / heads, between two dense
/// projections (Vaswani et al., "Attention is all you need", NeurIPS 2017). As PyTorch's MultiheadAttention(width,
/// heads, batch_first = True) of query = key = value, with its parameters: `attention1.in_proj_weight` (3 · width,
/// width), whose thirds give queries, keys and values, `.in_proj_bias`, `.out_proj.weight` (width, width),
/// `.out_proj.bias`.
///
/// The score matrix is never stored in full: forward and backward compute some rows at a time. With `causal`, later
/// steps never affect a step, not even if they are NaN; except that large projections in training may mix the
/// roundings, and NaN, of neighbouring steps (`onednn::Strassen`). On the processor, in float32.
class MultiHeadAttention final : public Layer {
 public:
  /// Building throws InputError for inputs other than (N, T, width), for a width that is not a multiple of `heads`, and
  /// if the field of lengths does not exist. A step throws InputError for a length outside [0, T].
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
