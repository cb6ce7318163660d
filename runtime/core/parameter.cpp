#include <ronda/runtime/core/error.hpp>
#include <ronda/runtime/core/parameter.hpp>

namespace ronda {
namespace {

/// For each column in file order (C, H, W), the column of the stored matrix that holds it.
std::vector<std::size_t> stored_columns(const Parameter& parameter, std::size_t columns) {
  std::vector<std::size_t> order(columns);
  if (!parameter.flattened) {
    for (std::size_t i = 0; i < columns; ++i) order[i] = i;
    return order;
  }
  const TensorDesc& sample = *parameter.flattened;
  if (sample.shape.rank() != 3 || static_cast<std::size_t>(sample.count()) != columns)
    throw LogicError("parameter " + parameter.name + " does not have the columns of " + sample.text());
  const auto rows = sample.layout.offsets(sample.shape, 0), cols = sample.layout.offsets(sample.shape, 1);
  const auto channels = sample.layout.offsets(sample.shape, 2);
  std::size_t at = 0;
  for (const auto c : channels)
    for (const auto h : rows)
      for (const auto w : cols) order[at++] = static_cast<std::size_t>(h + w + c);
  return order;
}

}  // namespace

std::vector<float> to_file(const Parameter& parameter, const Tensor& stored) {
  const auto count = static_cast<std::size_t>(stored.desc().count());
  std::vector<float> plain(count);
  reorder(stored, Tensor({stored.shape(), DType::float32, {}}, plain.data()));
  if (!parameter.flattened) return plain;
  const auto order = stored_columns(parameter, static_cast<std::size_t>(stored.shape()[1]));
  std::vector<float> file(count);
  for (std::size_t row = 0; row * order.size() < count; ++row)
    for (std::size_t i = 0; i < order.size(); ++i) file[row * order.size() + i] = plain[row * order.size() + order[i]];
  return file;
}

void from_file(const Parameter& parameter, std::span<const float> file, const Tensor& stored) {
  if (file.size() != static_cast<std::size_t>(stored.desc().count()))
    throw LogicError("parameter " + parameter.name + " has " + std::to_string(stored.desc().count()) + " elements, " +
                     std::to_string(file.size()) + " were given");
  std::vector<float> plain(file.begin(), file.end());
  if (parameter.flattened) {
    const auto order = stored_columns(parameter, static_cast<std::size_t>(stored.shape()[1]));
    for (std::size_t row = 0; row * order.size() < file.size(); ++row)
      for (std::size_t i = 0; i < order.size(); ++i)
        plain[row * order.size() + order[i]] = file[row * order.size() + i];
  }
  reorder(Tensor({stored.shape(), DType::float32, {}}, plain.data()), stored);
}

}  // namespace ronda
