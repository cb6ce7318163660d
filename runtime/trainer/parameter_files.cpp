#include <ronda/core/error.hpp>
#include <ronda/runtime/checkpoint/snapshot.hpp>
#include <ronda/runtime/io/safetensors.hpp>
#include <ronda/runtime/trainer/parameter_files.hpp>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

namespace ronda {
namespace {

using Entry = SafetensorsFile::Entry;

State state_of(const Parameter& parameter) {
  return {parameter.name, parameter.trained(), Scope::replicated, parameter.flattened};
}

/// What a file holds of a model.
std::vector<State> in_files(std::span<const Parameter> parameters, std::span<const State> states) {
  std::vector<State> all;
  std::ranges::transform(parameters, std::back_inserter(all), state_of);
  std::ranges::copy_if(states, std::back_inserter(all),
                       [](const State& state) { return state.scope != Scope::per_rank; });
  return all;
}

/// Null for a counter that is not there.
const Entry* find(const SafetensorsFile& file, const std::filesystem::path& path, const State& state) {
  const auto tensor = std::ranges::find(file.entries(), state.name, &Entry::name);
  if (tensor == file.entries().end()) {
    if (is_counter(state)) return nullptr;
    throw InputError(path.string() + ": the model's " + state.name +
                     " is not in this file; was it saved by another model?");
  }
  if (tensor->shape != state.tensor.shape() || tensor->dtype != state.tensor.dtype())
    throw InputError(path.string() + ": " + state.name + " has shape " + tensor->shape.text() + " of " +
                     std::string(name_of(tensor->dtype)) + ", the model's " + state.tensor.shape().text() + " of " +
                     std::string(name_of(state.tensor.dtype())));
  return &*tensor;
}

NamedTensor to_tensor(const State& state) {
  NamedTensor tensor{state.name, state.tensor.shape()};
  if (is_counter(state)) {
    const auto numbers = state.tensor.as<const std::int64_t>();
    tensor.integers.assign(numbers.begin(), numbers.end());
  } else {
    tensor.values = to_file(state);
  }
  return tensor;
}

}  // namespace

void load_parameters(const std::filesystem::path& path, std::span<const Parameter> parameters,
                     std::span<const State> states) {
  SafetensorsFile file(path);
  const std::vector<State> wanted = in_files(parameters, states);
  for (const auto& tensor : file.entries())
    if (std::ranges::find(wanted, tensor.name, &State::name) == wanted.end())
      throw InputError(path.string() + ": the model has no " + tensor.name + "; was it saved by another model?");
  for (const State& state : wanted) find(file, path, state);  // nothing is read or set before everything fits
  for (const State& state : wanted) {
    const Entry* const entry = find(file, path, state);
    if (entry == nullptr) continue;
    if (is_counter(state))
      std::ranges::copy(file.read_integers(*entry), state.tensor.as<std::int64_t>().begin());
    else
      from_file(state, file.read(*entry));
  }
}

void save_parameters(const std::filesystem::path& path, std::span<const Parameter> parameters,
                     std::span<const State> states) {
  std::vector<NamedTensor> tensors;
  std::ranges::transform(in_files(parameters, states), std::back_inserter(tensors), to_tensor);
  write_safetensors(path, tensors, {{"format", "pt"}});
}

}  // namespace ronda
