#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ronda/core/tensor.hpp>

namespace ronda {

class TouchedRows;

/// A parameter's number in its model, counted from 0 in order of use.
enum class ParameterId : std::uint32_t {};
[[nodiscard]] constexpr std::size_t index_of(ParameterId id) noexcept { return static_cast<std::size_t>(id); }

/// A trained tensor and its gradient, which have one layout and one type. Views into arenas that the strategy owns.
struct Parameter {
  ParameterId id{};
  std::string name;  ///< as in files: `conv1.weight`
  Tensor value, gradient;
  std::optional<Tensor> master;  ///< float32 copy, where `value` has a half type

  /// A dense weight behind a flatten stores its columns in the order of that activation's bytes: the description of one
  /// sample of it, (H, W, C) or (T, C) with its layout. Files hold the columns in (C, H, W) order, as PyTorch's do, or
  /// in (T, C) order.
  std::optional<TensorDesc> flattened;

  /// Of a table whose gradient is sparse: the rows that have one. Backward adds to these rows and to this list; whoever
  /// owns both clears them before a step. Null: backward writes the whole gradient.
  TouchedRows* touched = nullptr;

  /// What the optimizer changes, in float32: for files, hashes and initial values.
  [[nodiscard]] const Tensor& trained() const noexcept { return master ? *master : value; }
};

/// The parameter in file layout: row-major, columns in (C, H, W) order where it was flattened.
[[nodiscard]] std::vector<float> to_file(const Parameter& parameter, const Tensor& stored);
/// The inverse; `file` has as many elements as the parameter's logical shape. Padding stays as it is.
void from_file(const Parameter& parameter, std::span<const float> file, const Tensor& stored);

}  // namespace ronda
