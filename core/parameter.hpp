#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ronda/core/parallel.hpp>
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
  std::optional<Tensor> master;  ///< float32 copy, if `value` has a half type

  /// A dense weight after a flatten stores its columns in the memory order of the flattened activation. This describes
  /// one sample of that activation: (H, W, C) or (T, C), with its layout. Files hold the columns in (C, H, W) order, as
  /// PyTorch does, or in (T, C) order.
  std::optional<TensorDesc> flattened;

  /// For a table with a sparse gradient: the rows that have a gradient. Backward adds to these rows and to this list;
  /// their owner clears both before a step. Null: backward writes the whole gradient.
  TouchedRows* touched = nullptr;

  /// The float32 values that the optimizer updates: for files, hashes and initial values.
  [[nodiscard]] const Tensor& trained() const noexcept { return master ? *master : value; }
};

/// The parameter in file layout: row-major, the columns ordered as described at `flattened`.
[[nodiscard]] std::vector<float> to_file(const Parameter& parameter, const Tensor& stored);
/// The inverse; `file` has as many elements as the parameter's logical shape. Padding is not changed.
void from_file(const Parameter& parameter, std::span<const float> file, const Tensor& stored);

/// The partition of a parameter in file layout. The whole is (outer, extent, inner), row-major; each part has a range,
/// possibly empty, of the middle axis.
struct ParameterSlices {
  int axis = 0;  ///< axis of the parameter's shape: the middle axis, or with it the outer one
  std::int64_t outer = 1, extent = 1, inner = 1;
  std::vector<Range> parts;

  /// Elements of a part.
  [[nodiscard]] std::size_t count(std::size_t part) const noexcept {
    return static_cast<std::size_t>(outer * inner) * parts[part].size();
  }
  /// Copies a part out of the whole, or into it, both row-major.
  void take(std::span<const float> whole, std::size_t part, std::span<float> taken) const;
  void put(std::span<const float> taken, std::size_t part, std::span<float> whole) const;
};

}  // namespace ronda
