#pragma once
#include <ronda/layers/layer.hpp>

namespace ronda {

struct MultiHeadAttentionOptions {
  bool causal = false;  ///< a step reads itself and the steps before it alone: a decoder
  bool bias = true;     ///< of both projections
};

/// Self-attention of (N, T, width): each step becomes a mean of all steps' values, weighted by how its query fits their
/// keys, in each head by itself: softmax(Q · Kᵀ / √d) · V, d = width / heads, between two dense projections (Vaswani et
/// al., "Attention is all you need", NeurIPS 2017). As PyTorch's MultiheadAttention(width, heads, batch_first = True)
/// of query = key = value, with its parameters: `attention1.in_proj_weight` (3 · width, width), whose thirds give
/// queries, keys and values, `.in_proj_bias`, `.out_proj.weight` (width, width), `.out_proj.bias`.
///
/// Scores are never in memory as a whole: forward and backward compute some rows of them at a time. Where it is causal,
/// what lies behind a step does not reach it, not even NaN. For the processor, in float32.
class MultiHeadAttention final : public Layer {
 public:
  /// Building throws InputError for inputs that are no (N, T, width), and for a width that `heads` do not divide.
  explicit MultiHeadAttention(std::int64_t heads, MultiHeadAttentionOptions options = {})
      : spec_{.heads = heads, .causal = options.causal}, bias_(options.bias) {}
  [[nodiscard]] std::string_view kind() const noexcept override { return "attention"; }
  Value build(Value x, GraphBuilder& builder) const override;

 private:
  AttentionSpec spec_;
  bool bias_;
};

}  // namespace ronda
