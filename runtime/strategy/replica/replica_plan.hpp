#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ronda/collectives/fusion_buffer.hpp>
#include <ronda/layers/primitives.hpp>
#include <ronda/layers/program.hpp>

namespace ronda {

/// Positions of a program's parameters in a replica's arenas.
struct ReplicaPlan {
  /// Allocates no arenas. Throws InputError for a model without parameters, and for sparse tables of a half type;
  /// LogicError for parameters of another type than the primitives'.
  /// @param reduced_in  as MirroredOptions::reduce_dtype; InputError for an unsupported type
  ReplicaPlan(const Program& program, const Primitives& primitives, std::optional<DType> reduced_in = {});

  DType dtype = DType::float32;            ///< of activations, gradients, and the values that layers read
  DType reduce_dtype = DType::float32;     ///< type in which gradients are summed over the ranks: `dtype`, or float32
  std::vector<ParameterRequest> requests;  ///< by ParameterId
  /// Positions of gradients and values, in the order in which backward finishes gradients: the last layer's first.
  /// Sparse tables follow all others. The optimizer's values and states are the same elements of their arenas.
  std::vector<GradientSlot> slots;
  std::size_t dense_slots = 0;     ///< number of slots that are not sparse tables; these come first
  std::size_t dense_bytes = 0;     ///< of the gradients, without sparse tables
  std::size_t arena_bytes = 0;     ///< of the gradients, and of the values that layers read
  std::vector<std::string> lines;  ///< lines that are compared between ranks

  [[nodiscard]] std::size_t elements() const noexcept { return arena_bytes / size_of(dtype); }
  [[nodiscard]] std::size_t dense_elements() const noexcept { return dense_bytes / size_of(dtype); }
  [[nodiscard]] std::span<const GradientSlot> tables() const noexcept { return std::span(slots).subspan(dense_slots); }
  /// Rows of a sparse table.
  [[nodiscard]] std::size_t rows(const GradientSlot& table) const {
    return static_cast<std::size_t>(requests[index_of(table.id)].desc.shape[0]);
  }
  /// Bytes of the lists of touched rows.
  [[nodiscard]] std::size_t list_bytes() const;
  /// True if the trained values are separate from those that layers read.
  [[nodiscard]] bool mixed() const noexcept { return dtype != DType::float32; }
  /// True if gradients are widened into an arena of their own to be summed.
  [[nodiscard]] bool widens() const noexcept { return reduce_dtype != dtype; }
};

}  // namespace ronda
