#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include <ronda/core/tensor.hpp>
#include <ronda/layers/initializer.hpp>

namespace ronda {

/// A parameter that the operations of a program need, in the layout that they read.
struct ParameterRequest {
  std::string name;                                    ///< `dense1.weight`
  TensorDesc desc;                                     ///< logical shape as in files, layout as the primitive prefers
  std::int64_t fan_in = 0, fan_out = 0;                ///< 0 for a bias
  std::optional<TensorDesc> flattened = std::nullopt;  ///< see Parameter
  std::optional<Initializer> initializer = std::nullopt;  ///< nullopt: the model's initializer
  std::optional<std::int64_t> zero_row = std::nullopt;    ///< row of a table that starts at zero
  bool sparse = false;                                    ///< allocate Parameter::touched
};

}  // namespace ronda
