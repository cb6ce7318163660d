#pragma once
#include <cstddef>
#include <optional>
#include <span>

#include <ronda/core/parameter_slices.hpp>
#include <ronda/core/state.hpp>

namespace ronda {

/// A part of a state, in memory of its own.
struct StateSlice {
  ParameterSlices slices;  ///< of the parameter
  std::size_t part = 0;
  State state;  ///< of the part's shape, in its layout
};

/// What a rank has of a state that is divided over the ranks (Scope::sharded): some neighbours of its elements, in the
/// order in which the state is stored; or a slice of it.
struct StatePiece {
  State whole;                ///< its tensor has memory where this rank has all of it, and is empty elsewhere
  float* elements = nullptr;  ///< of the host
  std::size_t first = 0;      ///< the place of the first one among the stored elements, padding counted
  std::size_t count = 0;      ///< 0: the rank has nothing of it
  std::optional<StateSlice> slice = {};  ///< given: these elements are it
};

/// Sets the elements. `file` has all of the state, as from_file of a State.
void from_file(const StatePiece& piece, std::span<const float> file);

}  // namespace ronda
