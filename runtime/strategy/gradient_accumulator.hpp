#pragma once
#include <cstddef>
#include <memory>
#include <span>

#include <ronda/core/buffer.hpp>
#include <ronda/core/device_context.hpp>
#include <ronda/core/parameter.hpp>
#include <ronda/core/stream.hpp>
#include <ronda/layers/pass.hpp>
#include <ronda/runtime/strategy/gradient_exchange.hpp>

namespace ronda {

/// Sums the gradients of several micro-batches before they are exchanged once. Layers write their gradients as always
/// and know nothing of it: when one is ready, it is added to a sum kept here; in the last micro-batch the sum is added
/// to it and the exchange hears that it is ready. That is work of the stream, and can be recorded with it. Sums are
/// float32, also of half gradients, which are rounded once, at the end.
class GradientAccumulator {
 public:
  /// @param parameters     with gradients in the arena of `elements` that starts at `arena`; both outlive this object
  /// @param context        of the device that holds them
  /// @param micro_batches  of a step; for one no memory is taken, and the exchange hears of gradients directly
  GradientAccumulator(std::span<const Parameter> parameters, const std::byte* arena, std::size_t elements,
                      std::shared_ptr<DeviceContext> context, std::size_t micro_batches);

  /// Bytes of the sums.
  [[nodiscard]] static std::size_t bytes(std::size_t elements, std::size_t micro_batches) noexcept {
    return micro_batches > 1 ? elements * sizeof(float) : 0;
  }

  /// Hears of the gradients of a micro-batch, the first of its step or not, the last or not.
  [[nodiscard]] OnReady listen(bool first, bool last, GradientExchange& exchange) noexcept;
  /// The gradient of `id` is complete: see OnReady.
  void mark_ready(ParameterId id, Stream& stream);

 private:
  std::shared_ptr<DeviceContext> context_;
  std::span<const Parameter> parameters_;
  const std::byte* arena_;
  Buffer sums_;
  bool first_ = true;
  GradientExchange* last_ = nullptr;  ///< in the last micro-batch
};

}  // namespace ronda
