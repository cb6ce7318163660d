#pragma once
#include <ronda/layers/layer.hpp>

namespace ronda {

/// Adds row t of the trained weight (positions, width) to step t of each sample of (N, T, width), so that later layers
/// can distinguish the steps. T is at most `positions`. As GPT-2's `wpe` (Radford et al., "Language models are
/// unsupervised multitask learners", 2019). On the processor, in float32.
class PositionalEmbedding final : public Layer {
 public:
  /// @param initializer  initializer of the weight
  explicit PositionalEmbedding(std::int64_t positions, Initializer initializer = Initializer::standard_normal)
      : spec_{.rows = positions}, initializer_(initializer) {}
  [[nodiscard]] std::string_view kind() const noexcept override { return "positional_embedding"; }
  Value build(Value x, GraphBuilder& builder) const override;

 private:
  PositionSpec spec_;
  Initializer initializer_;
};

}  // namespace ronda
