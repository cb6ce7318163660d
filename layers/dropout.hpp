#pragma once
#include <ronda/layers/layer.hpp>

namespace ronda {

/// In training, sets each element to 0 with probability p and divides it by 1 − p otherwise, which keeps its mean; the
/// identity in evaluation (Srivastava et al., "Dropout: a simple way to prevent neural networks from overfitting", JMLR
/// 2014). For any shape (N, …). As PyTorch's Dropout; p is rounded to 65536ths.
///
/// The mask depends only on the seed, the step, the layer's name, the sample's index in the global batch
/// (Batch::first_row) and the element: it is the same for any number of ranks, any gradient accumulation, and after a
/// resume. Forward and backward both generate it, so it takes no memory. NaN stays NaN, and a dropped infinity becomes
/// NaN. On the processor.
class Dropout final : public Layer {
 public:
  /// @param p  0: the layer adds no operation; 1: all elements are dropped, as in PyTorch
  /// Throws InputError if p is not in [0, 1].
  explicit Dropout(double p = 0.5);
  [[nodiscard]] std::string_view kind() const noexcept override { return "dropout"; }
  Value build(Value x, GraphBuilder& builder) const override { return spec_.p == 0 ? x : builder.apply(spec_, {x}); }

 private:
  DropoutSpec spec_;
};

}  // namespace ronda
