#include <ronda/core/parameter.hpp>
#include <ronda/core/state.hpp>

#include <algorithm>

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

}  // namespace ronda
