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

/// Tensors in memory, as SafetensorsFile has those of a file.
class TensorsInMemory {
 public:
  explicit TensorsInMemory(std::span<const NamedTensor> tensors) {
    for (const NamedTensor& tensor : tensors) {
      entries_.push_back({tensor.name, tensor.shape, tensor.dtype()});
      tensors_.push_back(&tensor);
    }
  }
  [[nodiscard]] std::span<const Entry> entries() const noexcept { return entries_; }
  [[nodiscard]] std::span<const float> read(const Entry& entry) const { return at(entry).values; }
  [[nodiscard]] std::span<const std::int64_t> read_integers(const Entry& entry) const { return at(entry).integers; }
  [[nodiscard]] std::span<const std::int8_t> read_int8(const Entry& entry) const { return at(entry).bytes; }

 private:
  [[nodiscard]] const NamedTensor& at(const Entry& entry) const { return *tensors_[&entry - entries_.data()]; }

  std::vector<Entry> entries_;
  std::vector<const NamedTensor*> tensors_;
};

/// Null for a counter that is not there.
const Entry* find(std::span<const Entry> entries, const std::filesystem::path& path, const State& state) {
  const auto tensor = std::ranges::find(entries, state.name, &Entry::name);
  if (tensor == entries.end()) {
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

/// @param source  SafetensorsFile or TensorsInMemory
template <class Source>
void load_from(Source& source, const std::filesystem::path& path, const std::vector<State>& wanted) {
  const std::span<const Entry> entries = source.entries();
  for (const auto& tensor : entries)
    if (std::ranges::find(wanted, tensor.name, &State::name) == wanted.end())
      throw InputError(path.string() + ": the model has no " + tensor.name + "; was it saved by another model?");
  for (const State& state : wanted) find(entries, path, state);  // nothing is read or set before everything fits
  for (const State& state : wanted) {
    const Entry* const entry = find(entries, path, state);
    if (entry == nullptr) continue;
    if (is_counter(state))
      std::ranges::copy(source.read_integers(*entry), state.tensor.template as<std::int64_t>().begin());
    else if (entry->dtype == DType::int8)
      from_file(state, std::span<const std::int8_t>(source.read_int8(*entry)));
    else
      from_file(state, source.read(*entry));
  }
}

NamedTensor to_tensor(const State& state) {
  NamedTensor tensor{state.name, state.tensor.shape()};
  if (is_counter(state)) {
    const auto numbers = state.tensor.as<const std::int64_t>();
    tensor.integers.assign(numbers.begin(), numbers.end());
  } else if (state.tensor.dtype() == DType::int8) {
    tensor.bytes = int8_to_file(state);
  } else {
    tensor.values = to_file(state);
  }
  return tensor;
}

}  // namespace

void load_parameters(const std::filesystem::path& path, std::span<const Parameter> parameters,
                     std::span<const State> states) {
  SafetensorsFile file(path);
  load_from(file, path, in_files(parameters, states));
}

void load_parameters(std::span<const NamedTensor> tensors, const std::filesystem::path& source,
                     std::span<const Parameter> parameters, std::span<const State> states) {
  const TensorsInMemory in_memory(tensors);
  load_from(in_memory, source, in_files(parameters, states));
}

std::vector<NamedTensor> tensors_of(std::span<const Parameter> parameters, std::span<const State> states) {
  std::vector<NamedTensor> tensors;
  std::ranges::transform(in_files(parameters, states), std::back_inserter(tensors), to_tensor);
  return tensors;
}

void save_parameters(const std::filesystem::path& path, std::span<const Parameter> parameters,
                     std::span<const State> states, const std::map<std::string, std::string>& metadata) {
  std::map<std::string, std::string> all{{"format", "pt"}};
  all.insert(metadata.begin(), metadata.end());
  write_safetensors(path, tensors_of(parameters, states), all);
}

}  // namespace ronda
