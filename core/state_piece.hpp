#pragma once
#include <cstddef>
#include <optional>
#include <span>

#include <ronda/core/parameter_slices.hpp>
#include <ronda/core/state.hpp>

namespace ronda {

/// A part of a state, in its own memory.
struct StateSlice {
  ParameterSlices slices;  ///< the partition of the parameter
  std::size_t part = 0;
  State state;  ///< has the part's shape and layout
};

/// The part that a rank stores of a state divided over the ranks (Scope::sharded): a contiguous range of its stored
/// elements, or a slice.
struct StatePiece {
  State whole;                           ///< its tensor is empty unless this rank stores the whole state
  float* elements = nullptr;             ///< in host memory
  std::size_t first = 0;                 ///< index of the first one among the stored elements, padding included
  std::size_t count = 0;                 ///< 0: this rank stores no part
  std::optional<StateSlice> slice = {};  ///< if set, the elements are this slice
};

/// Sets the elements. `file` holds the whole state, as for from_file of a State.
void from_file(const StatePiece& piece, std::span<const float> file);

}  // namespace ronda
