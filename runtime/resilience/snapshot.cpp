#include <ronda/runtime/core/error.hpp>
#include <ronda/runtime/resilience/snapshot.hpp>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>

namespace ronda {
namespace {

void check(std::span<const State> states) {
  std::set<std::string> names;
  for (const auto& state : states)
    if ((state.tensor.dtype() != DType::float32 && !is_counter(state)) || state.scope == Scope::sharded ||
        !names.insert(state.name).second)
      throw LogicError(
          "the state " + state.name + ", " + state.tensor.desc().text() +
          ", cannot be saved: checkpoints hold float32 states that are replicated or per rank, each name once");
}

void copy(std::span<const State> from, std::span<const State> to) noexcept {
  for (std::size_t i = 0; i < from.size(); ++i)
    if (const std::size_t bytes = from[i].tensor.desc().bytes(); bytes > 0)
      std::memcpy(to[i].tensor.data(), from[i].tensor.data(), bytes);
}

}  // namespace

bool is_counter(const State& state) noexcept {
  return state.tensor.dtype() == DType::int64 && state.scope == Scope::replicated;
}

std::vector<State> share_of(std::span<const State> states, int rank, int ranks) {
  check(states);
  std::vector<std::size_t> by_size(states.size());
  for (std::size_t i = 0; i < states.size(); ++i) by_size[i] = i;
  const auto size = [&](std::size_t i) { return states[i].tensor.desc().count(); };
  std::ranges::stable_sort(by_size, std::ranges::greater(), size);
  std::vector<std::int64_t> loads(static_cast<std::size_t>(ranks));
  std::vector<bool> mine(states.size());
  for (const std::size_t i : by_size) {
    const auto least = std::ranges::min_element(loads);
    if (is_counter(states[i])) continue;
    const bool replicated = states[i].scope == Scope::replicated;
    mine[i] = !replicated || least - loads.begin() == rank;
    if (replicated) *least += size(i);
  }
  std::vector<State> share;
  for (std::size_t i = 0; i < states.size(); ++i)
    if (mine[i]) share.push_back(states[i]);
  return share;
}

Snapshot::Snapshot(std::vector<State> states) : states_(std::move(states)) {
  ArenaPlan plan;
  std::vector<std::size_t> offsets;
  for (const auto& state : states_) offsets.push_back(plan.reserve(state.tensor.desc().bytes()));
  memory_ = Buffer::host(plan.bytes());
  for (std::size_t i = 0; i < states_.size(); ++i) {
    copies_.push_back(states_[i]);
    copies_[i].tensor = Tensor(states_[i].tensor.desc(), memory_.data() + offsets[i]);
  }
}

void Snapshot::take() noexcept { copy(states_, copies_); }
void Snapshot::give_back() const noexcept { copy(copies_, states_); }

std::vector<NamedTensor> Snapshot::tensors() const {
  std::vector<NamedTensor> tensors;
  for (const auto& copy : copies_) tensors.push_back({copy.name, copy.tensor.shape(), to_file(copy)});
  return tensors;
}

}  // namespace ronda
