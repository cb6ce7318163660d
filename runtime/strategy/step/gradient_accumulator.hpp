#pragma once
#include <cstddef>

#include <ronda/core/buffer.hpp>
#include <ronda/core/state.hpp>
#include <ronda/core/stream.hpp>
#include <ronda/layers/pass.hpp>
#include <ronda/runtime/strategy/step/gradient_exchange.hpp>
#include <ronda/runtime/strategy/replica/replica.hpp>

namespace ronda {

/// Sums the gradients of several micro-batches before one exchange. Layers write their gradients as usual. Each
/// finished gradient is added to a sum kept here; in the last micro-batch the sum is added to the gradient, which is
/// then marked ready in the exchange. This work is enqueued on the stream, and can be recorded with it. Sums are
/// float32; half gradients are rounded once, at the end. Gradients of sparse tables, to which backward adds, are their
/// own sums; they are cleared before the first micro-batch. If the ranks reduce half gradients in float32, they reduce
/// these sums, also with only one micro-batch.
class GradientAccumulator {
 public:
  /// @param replica        bound; outlives this object
  /// @param micro_batches  per step. With one, no memory is allocated, and gradients are marked in the exchange
  ///                       directly, unless they are widened. An exchange that sums by itself receives the gradients of
  ///                       each micro-batch
  GradientAccumulator(Replica& replica, std::size_t micro_batches);

  /// Bytes of the sums of `elements` gradients.
  [[nodiscard]] static std::size_t bytes(std::size_t elements, std::size_t micro_batches) noexcept {
    return micro_batches > 1 ? elements * sizeof(float) : 0;
  }

  /// Returns the callback for the gradients of a micro-batch, which is the first or last of its step or not. Call it
  /// before backward.
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
  GradientExchange* last_ = nullptr;  ///< set in the last micro-batch
};

}  // namespace ronda
