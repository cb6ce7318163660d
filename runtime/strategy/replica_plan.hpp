#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include <ronda/collectives/fusion_buffer.hpp>
#include <ronda/layers/primitives.hpp>
#include <ronda/layers/program.hpp>

namespace ronda {

/// Where the parameters of a program lie in a replica's arenas.
struct ReplicaPlan {
  /// Takes no memory. Throws InputError for a model without parameters, LogicError for parameters of another type than
  /// the primitives'.
  ReplicaPlan(const Program& program, const Primitives& primitives);

  DType dtype = DType::float32;            ///< of activations, gradients, and the values that layers read
  std::vector<ParameterRequest> requests;  ///< by ParameterId
  /// Places of gradients and values, in the order in which backward finishes gradients: the last layer's first. The
  /// optimizer's values and states are the same elements of their arenas.
  std::vector<GradientSlot> slots;
  std::size_t arena_bytes = 0;     ///< of the gradients, and of the values that layers read
  std::vector<std::string> lines;  ///< what ranks compare

  [[nodiscard]] std::size_t elements() const noexcept { return arena_bytes / size_of(dtype); }
  /// Whether the values that are trained are others than those that layers read.
  [[nodiscard]] bool mixed() const noexcept { return dtype != DType::float32; }
};

}  // namespace ronda
