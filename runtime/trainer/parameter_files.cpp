#include <ronda/core/error.hpp>
#include <ronda/runtime/io/safetensors.hpp>
#include <ronda/runtime/trainer/parameter_files.hpp>

#include <algorithm>

namespace ronda {
namespace {

using Entry = SafetensorsFile::Entry;

const Entry& find(const SafetensorsFile& file, const std::filesystem::path& path, const Parameter& parameter) {
  const auto tensor = std::ranges::find(file.entries(), parameter.name, &Entry::name);
  if (tensor == file.entries().end())
    throw InputError(path.string() + ": the model's parameter " + parameter.name +
                     " is not in this file; was it saved by another model?");
  if (tensor->shape != parameter.value.shape())
    throw InputError(path.string() + ": " + parameter.name + " has shape " + tensor->shape.text() +
                     ", the model's has " + parameter.value.shape().text());
  return *tensor;
}

}  // namespace

void load_parameters(const std::filesystem::path& path, std::span<const Parameter> parameters) {
  SafetensorsFile file(path);
  for (const auto& tensor : file.entries())
    if (std::ranges::find(parameters, tensor.name, &Parameter::name) == parameters.end())
      throw InputError(path.string() + ": the model has no parameter " + tensor.name +
                       "; was it saved by another model?");
  for (const auto& parameter : parameters)
    find(file, path, parameter);  // nothing is read or set before everything fits
  for (const auto& parameter : parameters)
    from_file(parameter, file.read(find(file, path, parameter)), parameter.trained());
}

void save_parameters(const std::filesystem::path& path, std::span<const Parameter> parameters) {
  std::vector<NamedTensor> tensors;
  for (const auto& parameter : parameters)
    tensors.push_back({parameter.name, parameter.value.shape(), to_file(parameter, parameter.trained())});
  write_safetensors(path, tensors, {{"format", "pt"}});
}

}  // namespace ronda
