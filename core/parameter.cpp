#include <ronda/core/parameter.hpp>
#include <ronda/core/state.hpp>

namespace ronda {

std::vector<float> to_file(const Parameter& parameter, const Tensor& stored) {
  return to_file(State{parameter.name, stored, Scope::replicated, parameter.flattened});
}

void from_file(const Parameter& parameter, std::span<const float> file, const Tensor& stored) {
  from_file(State{parameter.name, stored, Scope::replicated, parameter.flattened}, file);
}

}  // namespace ronda
