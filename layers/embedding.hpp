#pragma once
#include <ronda/layers/layer.hpp>

namespace ronda {

struct EmbeddingOptions {
  /// The token for padding, PyTorch's padding_idx: a row of the table, which starts at zero and is never trained; or
  /// -1, which is not in the table and reads as zeros.
  std::int64_t padding = -1;
  /// True: each step sends and updates only the rows of the batch's tokens, if only embeddings read the table. As
  /// PyTorch's sparse = True with SparseAdam, all other rows keep their values and optimizer states, without weight
  /// decay. False: the gradient is dense.
  bool sparse = true;
  /// Initial values of the table. N(0, 1) is too large if a Dense uses the table too.
  Initializer initializer = Initializer::standard_normal;
};

/// Looks up rows of a table: int32 tokens (N, …) become (N, …, width). The weight is (rows, width), drawn from N(0, 1),
/// as PyTorch's Embedding. A token is in [0, rows), or the padding; for another token the step throws InputError on the
/// rank that reads it. Rows that only samples of weight 0 read are not updated. On the processor, in float32.
class Embedding final : public Layer {
 public:
  Embedding(std::int64_t rows, std::int64_t width, EmbeddingOptions options = {})
      : spec_{.rows = rows, .width = width, .padding = options.padding}, options_(options) {}
  [[nodiscard]] std::string_view kind() const noexcept override { return "embedding"; }
  Value build(Value tokens, GraphBuilder& builder) const override;

  [[nodiscard]] std::int64_t rows() const noexcept { return spec_.rows; }
  [[nodiscard]] std::int64_t width() const noexcept { return spec_.width; }
  /// The table's parameter in the graph, for other layers that read it.
  [[nodiscard]] ParameterId table(GraphBuilder& builder) const;

 private:
  EmbeddingSpec spec_;
  EmbeddingOptions options_;
};

/// The sum or the mean of each sample's rows, without padding: int32 tokens (N, T) become (N, width); zeros if all
/// tokens are padding. Otherwise as Embedding, and as PyTorch's EmbeddingBag.
class EmbeddingBag final : public Layer {
 public:
  EmbeddingBag(std::int64_t rows, std::int64_t width, BagMode mode = BagMode::mean, EmbeddingOptions options = {})
      : spec_{.rows = rows, .width = width, .padding = options.padding, .bag = mode}, options_(options) {}
  [[nodiscard]] std::string_view kind() const noexcept override { return "embedding_bag"; }
  Value build(Value tokens, GraphBuilder& builder) const override;

 private:
  EmbeddingSpec spec_;
  EmbeddingOptions options_;
};

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
