#pragma once
#include <cstddef>

#include <ronda/core/buffer.hpp>
#include <ronda/core/parameter.hpp>
#include <ronda/core/stream.hpp>
#include <ronda/layers/pass.hpp>
#include <ronda/runtime/strategy/gradient_exchange.hpp>
#include <ronda/runtime/strategy/replica.hpp>

namespace ronda {

/// Sums the gradients of several micro-batches before they are exchanged once. Layers write their gradients as always
/// and know nothing of it: when one is ready, it is added to a sum kept here; in the last micro-batch the sum is added
/// to it and the exchange hears that it is ready. That is work of the stream, and can be recorded with it. Sums are
/// float32, also of half gradients, which are rounded once, at the end. Gradients of sparse tables, to which backward
/// adds, are their own sums, and are cleared before the first micro-batch. Where the ranks reduce half gradients in
/// float32, it is these sums that they reduce, of one micro-batch too.
class GradientAccumulator {
 public:
  /// @param replica        bound; outlives this object
  /// @param micro_batches  whose gradients are summed here; for one no memory is taken, and the exchange hears of
  ///                       gradients directly, unless they are widened: of each micro-batch, where it sums itself
  GradientAccumulator(Replica& replica, std::size_t micro_batches);

  /// Bytes of the sums of `elements` gradients.
  [[nodiscard]] static std::size_t bytes(std::size_t elements, std::size_t micro_batches) noexcept {
    return micro_batches > 1 ? elements * sizeof(float) : 0;
  }

  /// Before backward: hears of the gradients of a micro-batch, the first of its step or not, the last or not.
  [[nodiscard]] OnReady listen(bool first, bool last, GradientExchange& exchange);
  /// The gradient of `id` is complete: see OnReady.
  void mark_ready(ParameterId id, Stream& stream);

 private:
  void add(const Tensor& fresh, Stream& stream);

  Replica& replica_;
  bool wide_, sums_nothing_;
  Buffer own_;
  float* sums_;
  bool first_ = true;
  GradientExchange* last_ = nullptr;  ///< in the last micro-batch
};

}  // namespace ronda
