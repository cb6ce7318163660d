#pragma once
#include <ronda/layers/layer.hpp>

namespace ronda {

/// In training, each element is 0 with probability p and divided by 1 − p otherwise, so that its mean stays; in
/// evaluation nothing is changed (Srivastava et al., "Dropout: a simple way to prevent neural networks from
/// overfitting", JMLR 2014). (N, …), also of images. As PyTorch's Dropout; p is rounded to 65536ths.
///
/// What is dropped depends on the seed, the step, the layer's place in the model, the sample's place in the global
/// batch (Batch::first_row) and the element alone: it is the same on any number of ranks, with any accumulation, and
/// after a training was resumed. It is drawn in forward and again in backward, and nothing is kept in between. NaN
/// stays NaN, and so does what is dropped of an infinity. On the processor.
class Dropout final : public Layer {
 public:
  /// @param p  0: the layer adds nothing to the model; 1: all is dropped, as in PyTorch
  /// Throws InputError where p is not in [0, 1].
  explicit Dropout(double p = 0.5);
  [[nodiscard]] std::string_view kind() const noexcept override { return "dropout"; }
  Value build(Value x, GraphBuilder& builder) const override { return spec_.p == 0 ? x : builder.apply(spec_, {x}); }

 private:
  DropoutSpec spec_;
};

}  // namespace ronda
