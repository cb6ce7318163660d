#pragma once
#include <ronda/layers/layer.hpp>

namespace ronda {

struct EmbeddingOptions {
  /// The token that stands for no token: PyTorch's padding_idx. A row of the table, which starts at zero and is never
  /// trained; -1 is one that the table does not have, and reads as zeros.
  std::int64_t padding = -1;
  /// Of each step, only the rows that the batch's tokens name travel between ranks and are updated, where nothing but
  /// embeddings reads the table: as PyTorch's sparse = True with SparseAdam, rows that no token names keep their values
  /// and the optimizer's states, and weight decay is for the others. False: the gradient is as any other's.
  bool sparse = true;
  /// What the table starts with; N(0, 1) is too much for one that a Dense reads too.
  Initializer initializer = Initializer::standard_normal;
};

/// Rows of a table: int32 tokens (N, …) become (N, …, width). The weight is (rows, width), drawn from N(0, 1), as
/// PyTorch's Embedding. A token is at least 0 and below `rows`, or the padding; in a step others are an InputError,
/// on the rank that meets them. Samples of weight 0 touch no rows. For the processor, in float32.
class Embedding final : public Layer {
 public:
  Embedding(std::int64_t rows, std::int64_t width, EmbeddingOptions options = {})
      : spec_{.rows = rows, .width = width, .padding = options.padding}, options_(options) {}
  [[nodiscard]] std::string_view kind() const noexcept override { return "embedding"; }
  Value build(Value tokens, GraphBuilder& builder) const override;

  [[nodiscard]] std::int64_t rows() const noexcept { return spec_.rows; }
  [[nodiscard]] std::int64_t width() const noexcept { return spec_.width; }
  /// Its table in the graph, for layers that read it too.
  [[nodiscard]] ParameterId table(GraphBuilder& builder) const;

 private:
  EmbeddingSpec spec_;
  EmbeddingOptions options_;
};

/// The sum or the mean of each sample's rows, without those of padding: int32 tokens (N, T) become (N, width); zeros
/// where all tokens are padding. Else as Embedding, and as PyTorch's EmbeddingBag.
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

}  // namespace ronda
