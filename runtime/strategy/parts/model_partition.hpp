#pragma once
#include <cstddef>
#include <optional>
#include <vector>

#include <ronda/core/state.hpp>
#include <ronda/core/tensor.hpp>
#include <ronda/layers/graph.hpp>

namespace ronda {

/// How the parameters of a model are divided into parts, each computed by one rank of a group. A parameter belongs to
/// one part, or every part has a slice of it, or every part has all of it:
///
///     parameter   owner   slices   rank 0   rank 1
///     a           0       -        a        -         a stage of a pipeline
///     b           -       2        b[0:4]   b[4:8]    a split operation
///     c           -       -        c        c         an operation that every rank computes
struct ModelPartition {
  struct OfParameter {
    GraphParameter described;
    std::optional<std::size_t> owner = {};       ///< the part that has it alone
    std::optional<ParameterSlices> slices = {};  ///< by part
    TensorDesc stored = {};                      ///< layout in its owner; plain if it has none
    std::optional<TensorDesc> flattened = {};    ///< see Parameter
    [[nodiscard]] bool whole_in(std::size_t part) const noexcept { return !slices && (!owner || *owner == part); }
  };
  /// A state that a layer keeps from step to step.
  struct OfState {
    GraphState described;
    std::optional<std::size_t> owner = {};  ///< nullopt: every part has it
  };

  std::size_t parts = 1;
  std::vector<OfParameter> parameters = {};  ///< by ParameterId of the whole model
  std::vector<OfState> states = {};          ///< by StateId of the whole model

  [[nodiscard]] bool has_slices() const noexcept {
    for (const OfParameter& parameter : parameters)
      if (parameter.slices) return true;
    return false;
  }
};

}  // namespace ronda
