#pragma once
#include <string>

#include <ronda/core/error.hpp>

namespace ronda {

/// The error for an operation or a loss, `what`, that GPUs cannot compute.
[[nodiscard]] inline InputError processor_alone(const std::string& what) {
  return InputError(what + " computes on the processor alone; use " + setting("device", "cpu"));
}

}  // namespace ronda
