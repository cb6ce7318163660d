#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ronda/collectives/fusion_buffer.hpp>
#include <ronda/data/batch.hpp>
#include <ronda/layers/cast.hpp>
#include <ronda/layers/layer.hpp>
#include <ronda/layers/planner.hpp>

namespace ronda {

/// What a model and a loss need on one rank, for batches of certain fields and rows.
struct ReplicaPlan {
  /// Plans both; takes no memory. Throws InputError for fields and shapes that do not fit, LogicError for parameters of
  /// another type than the primitives'.
  ReplicaPlan(Layer& model, Loss& loss, Planner& planner, std::span<const Field> fields, std::size_t rows);

  TensorDesc input;                        ///< of the model, as batches have it
  DType dtype = DType::float32;            ///< of activations, gradients, and the values that layers read
  std::optional<Cast> cast;                ///< of the input, where that is not `dtype`
  std::vector<ParameterRequest> requests;  ///< by ParameterId
  /// Places of gradients and values, in the order in which backward finishes gradients: the last layer's first. The
  /// optimizer's values and states are the same elements of their arenas.
  std::vector<GradientSlot> slots;
  std::size_t arena_bytes = 0;  ///< of the gradients, and of the values that layers read
  BufferPlan buffers;
  std::vector<BufferRequest> buffer_requests;
  std::vector<std::string> lines;  ///< what ranks compare

  [[nodiscard]] std::size_t elements() const noexcept { return arena_bytes / size_of(dtype); }
  /// Whether the values that are trained are others than those that layers read.
  [[nodiscard]] bool mixed() const noexcept { return dtype != DType::float32; }
};

}  // namespace ronda
