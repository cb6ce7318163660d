#pragma once
#include <optional>

#include <ronda/layers/embedding.hpp>
#include <ronda/layers/layer.hpp>

namespace ronda {

/// Reshapes (N, H, W, C) to (N, H·W·C), in PyTorch's (C, H, W) order. Before a Dense no data is moved: the Dense stores
/// the columns of its weight in the order of the activation's bytes, and files have them in PyTorch's order (see
/// Parameter::flattened). A sequence (N, T, C) becomes (N, T·C), in (T, C) order.
class Flatten final : public Layer {
 public:
  [[nodiscard]] std::string_view kind() const noexcept override { return "flatten"; }
  Value build(Value x, GraphBuilder& builder) const override { return builder.apply(FlattenSpec{}, {x}); }
};

/// y = x · Wᵀ + b for (N, features), or for each step of (N, T, features); weight (outputs, features) and bias
/// (outputs), as PyTorch's Linear.
class Dense final : public Layer {
 public:
  explicit Dense(std::int64_t outputs, bool bias = true) : spec_{.outputs = outputs, .bias = bias} {}
  /// Uses an embedding's table as the weight, with one output per row, for the last layer of a language model (Press
  /// and Wolf, "Using the output embedding to improve language models", EACL 2017). Both layers train the same
  /// parameter, `embedding1.weight`, whose gradient is then not sparse.
  explicit Dense(const Embedding& table, bool bias = false)
      : spec_{.outputs = table.rows(), .bias = bias}, table_(table) {}
  [[nodiscard]] std::string_view kind() const noexcept override { return "dense"; }
  Value build(Value x, GraphBuilder& builder) const override;

 private:
  DenseSpec spec_;
  std::optional<Embedding> table_;  ///< a copy shares the original's parameters
};

}  // namespace ronda
