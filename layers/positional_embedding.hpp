#pragma once
#include <ronda/layers/layer.hpp>

namespace ronda {

/// x + p for (N, T, width): row t of the trained weight (positions, width) is added to step t of each sample, so that
/// what follows can tell the steps apart; T is at most `positions`. As GPT-2's `wpe` (Radford et al., "Language models
/// are unsupervised multitask learners", 2019). For the processor, in float32.
class PositionalEmbedding final : public Layer {
 public:
  /// @param initializer  of the weight
  explicit PositionalEmbedding(std::int64_t positions, Initializer initializer = Initializer::standard_normal)
      : spec_{.rows = positions}, initializer_(initializer) {}
  [[nodiscard]] std::string_view kind() const noexcept override { return "positional_embedding"; }
  Value build(Value x, GraphBuilder& builder) const override;

 private:
  PositionSpec spec_;
  Initializer initializer_;
};

}  // namespace ronda
