#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include <ronda/core/tensor.hpp>
#include <ronda/layers/initializer.hpp>

namespace ronda {

/// A parameter as a program's operations want it.
struct ParameterRequest {
  std::string name;                                    ///< `dense1.weight`
  TensorDesc desc;                                     ///< logical shape as in files, layout as the primitive prefers
  std::int64_t fan_in = 0, fan_out = 0;                ///< 0 for a bias
  std::optional<TensorDesc> flattened = std::nullopt;  ///< see Parameter
  std::optional<Initializer> initializer = std::nullopt;  ///< where the layer insists; otherwise the model's
  std::optional<std::int64_t> zero_row = std::nullopt;    ///< of a table: a row that starts at zero
  bool sparse = false;                                    ///< the parameter is to have Parameter::touched
};

}  // namespace ronda
