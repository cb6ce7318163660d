#pragma once
#include <cstddef>
#include <memory>
#include <span>

#include <ronda/collectives/fusion_buffer.hpp>
#include <ronda/core/buffer.hpp>
#include <ronda/core/device_context.hpp>
#include <ronda/core/parameter.hpp>
#include <ronda/core/stream.hpp>

namespace ronda {

/// Sums the gradients of several micro-batches before they are reduced once. Layers write their gradients as always and
/// know nothing of it: when one is ready, it is added to a sum kept here; in the last micro-batch the sum is added to
/// it and the fusion buffer hears that it is ready. On a GPU that is work of the stream, and can be recorded with it.
/// Sums are float32, also of half gradients, which are rounded once, at the end.
class GradientAccumulator {
 public:
  /// @param parameters  with gradients in the arena of `elements` that starts at `arena`; both outlive this object
  /// @param context     of the device that holds them; its streams do the adding
  GradientAccumulator(std::span<const Parameter> parameters, const std::byte* arena, std::size_t elements,
                      std::shared_ptr<DeviceContext> context);

  /// The next micro-batch is the first or not, the last or not.
  void begin(bool first, FusionBuffer* last) noexcept {
    first_ = first;
    last_ = last;
  }
  void mark_ready(ParameterId id, Stream& stream);

 private:
  void sum_here(float* fresh, float* sum, std::size_t count, int threads) const;
  void sum_over_there(const Tensor& fresh, const Tensor& sum, Stream& stream) const;

  std::shared_ptr<DeviceContext> context_;
  std::span<const Parameter> parameters_;
  const std::byte* arena_;
  Buffer sums_;
  bool first_ = true;
  FusionBuffer* last_ = nullptr;
};

}  // namespace ronda
