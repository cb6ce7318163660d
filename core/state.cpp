#include <ronda/core/error.hpp>
#include <ronda/core/state.hpp>

#include <algorithm>
#include <vector>

namespace ronda {

std::vector<float> to_file(const Parameter& parameter, const Tensor& stored) {
  return to_file(State{parameter.name, stored, Scope::replicated, parameter.flattened});
}

void from_file(const Parameter& parameter, std::span<const float> file, const Tensor& stored) {
  from_file(State{parameter.name, stored, Scope::replicated, parameter.flattened}, file);
}

namespace {

/// Calls body(place in the whole, place in the part, count) for each run of neighbours of a part.
template <class Body>
void for_each_run(const ParameterSlices& slices, std::size_t part, Body&& body) {
  const Range& range = slices.parts[part];
  const auto inner = static_cast<std::size_t>(slices.inner), row = static_cast<std::size_t>(slices.extent) * inner;
  const std::size_t count = range.size() * inner;
  for (std::size_t i = 0; i < static_cast<std::size_t>(slices.outer); ++i)
    body(i * row + range.begin * inner, i * count, count);
}

}  // namespace

void ParameterSlices::take(std::span<const float> whole, std::size_t part, std::span<float> taken) const {
  for_each_run(*this, part, [&](std::size_t from, std::size_t to, std::size_t count) {
    std::ranges::copy(whole.subspan(from, count), taken.subspan(to, count).begin());
  });
}

void ParameterSlices::put(std::span<const float> taken, std::size_t part, std::span<float> whole) const {
  for_each_run(*this, part, [&](std::size_t to, std::size_t from, std::size_t count) {
    std::ranges::copy(taken.subspan(from, count), whole.subspan(to, count).begin());
  });
}

namespace {

/// For each column in file order, (C, H, W) of an image and (T, C) of a sequence, the column of the stored matrix that
/// holds it.
std::vector<std::size_t> stored_columns(const State& state) {
  const auto columns = static_cast<std::size_t>(state.tensor.shape()[1]);
  std::vector<std::size_t> order(columns);
  const TensorDesc& sample = *state.flattened;
  const bool is_image = sample.shape.rank() == 3;
  if ((!is_image && sample.shape.rank() != 2) || static_cast<std::size_t>(sample.count()) != columns)
    throw LogicError(state.name + " does not have the columns of " + sample.text());
  const auto rows = sample.layout.offsets(sample.shape, 0), cols = sample.layout.offsets(sample.shape, 1);
  std::size_t at = 0;
  if (!is_image) {
    for (const auto step : rows)
      for (const auto channel : cols) order[at++] = static_cast<std::size_t>(step + channel);
    return order;
  }
  const auto channels = sample.layout.offsets(sample.shape, 2);
  for (const auto c : channels)
    for (const auto h : rows)
      for (const auto w : cols) order[at++] = static_cast<std::size_t>(h + w + c);
  return order;
}

template <class T>
std::vector<T> in_file_order(const State& state) {
  const auto count = static_cast<std::size_t>(state.tensor.desc().count());
  std::vector<T> plain(count);
  reorder(state.tensor, Tensor({state.tensor.shape(), dtype_of<T>, {}}, plain.data()));
  if (!state.flattened) return plain;
  const auto order = stored_columns(state);
  std::vector<T> file(count);
  for (std::size_t row = 0; row * order.size() < count; ++row)
    for (std::size_t i = 0; i < order.size(); ++i) file[row * order.size() + i] = plain[row * order.size() + order[i]];
  return file;
}

template <class T>
void set_from_file(const State& state, std::span<const T> file) {
  if (file.size() != static_cast<std::size_t>(state.tensor.desc().count()))
    throw LogicError(state.name + " has " + std::to_string(state.tensor.desc().count()) + " elements, " +
                     std::to_string(file.size()) + " were given");
  std::vector<T> plain(file.begin(), file.end());
  if (state.flattened) {
    const auto order = stored_columns(state);
    for (std::size_t row = 0; row * order.size() < file.size(); ++row)
      for (std::size_t i = 0; i < order.size(); ++i)
        plain[row * order.size() + order[i]] = file[row * order.size() + i];
  }
  reorder(Tensor({state.tensor.shape(), dtype_of<T>, {}}, plain.data()), state.tensor);
}

}  // namespace

std::vector<float> to_file(const State& state) { return in_file_order<float>(state); }
std::vector<std::int8_t> int8_to_file(const State& state) { return in_file_order<std::int8_t>(state); }

void from_file(const State& state, std::span<const float> file) { set_from_file(state, file); }
void from_file(const State& state, std::span<const std::int8_t> file) { set_from_file(state, file); }

void from_file(const StatePiece& piece, std::span<const float> file) {
  if (piece.count == 0) return;
  if (piece.slice) {
    std::vector<float> taken(piece.slice->slices.count(piece.slice->part));
    piece.slice->slices.take(file, piece.slice->part, taken);
    return from_file(piece.slice->state, taken);
  }
  if (!piece.whole.tensor.empty()) return from_file(piece.whole, file);
  State whole = piece.whole;
  std::vector<float> stored(static_cast<std::size_t>(whole.tensor.desc().padded_count()));
  whole.tensor = Tensor(whole.tensor.desc(), stored.data());
  from_file(whole, file);
  std::copy_n(stored.begin() + static_cast<std::ptrdiff_t>(piece.first), piece.count, piece.elements);
}

}  // namespace ronda
