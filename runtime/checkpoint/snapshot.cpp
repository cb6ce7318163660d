#include <ronda/core/error.hpp>
#include <ronda/runtime/checkpoint/snapshot.hpp>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

namespace ronda {
namespace {

void check(std::span<const State> states) {
  std::set<std::string> names;
  for (const auto& state : states)
    if ((state.tensor.dtype() != DType::float32 && !is_counter(state)) || !names.insert(state.name).second)
      throw LogicError("the state " + state.name + ", " + state.tensor.desc().text() +
                       ", cannot be saved: checkpoints hold float32 states, each name once");
}

}  // namespace

bool is_counter(const State& state) noexcept { return state.tensor.dtype() == DType::int64; }

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

Snapshot::Snapshot(std::vector<State> states, const ComputeDevice& device)
    : device_(device),
      beside_(ComputeDevice::on(device.context)),
      copy_(std::move(states), device_),
      here_(copy_.copies(), beside_) {}

Snapshot::~Snapshot() {
  try {
    arrived_.wait();        // a device may still write to the memory
  } catch (const Error&) {  // then it writes no more, and whoever reads has heard of it
  }
}

void Snapshot::take() {
  device_.stream->wait(arrived_);  // where nobody has read the last one
  copy_.take();
  beside_.stream->wait(device_.stream->record());
  here_.fetch();
  arrived_ = beside_.stream->record();
}

std::vector<NamedTensor> Snapshot::tensors() const {
  arrived_.wait();
  std::vector<NamedTensor> tensors;
  for (const auto& copy : here_.states()) tensors.push_back({copy.name, copy.tensor.shape(), to_file(copy)});
  return tensors;
}

}  // namespace ronda
