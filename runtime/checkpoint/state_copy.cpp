#include <ronda/runtime/checkpoint/state_copy.hpp>

#include <cstring>
#include <utility>

namespace ronda {
namespace {

bool is_here(const State& state) noexcept { return state.tensor.device().kind == DeviceKind::cpu; }

void copy(const State& from, const State& to, const ComputeDevice& device) {
  const std::size_t bytes = from.tensor.desc().bytes();
  if (bytes == 0) return;
  if (is_here(from) && is_here(to))
    std::memcpy(to.tensor.data(), from.tensor.data(), bytes);
  else
    device.context->copy(from.tensor.data(), to.tensor.data(), bytes, *device.stream);
}

}  // namespace

StateCopy::StateCopy(std::vector<State> states, ComputeDevice device)
    : device_(std::move(device)), states_(std::move(states)), copies_(states_) {
  ArenaPlan there, here;
  std::vector<std::size_t> offsets;
  for (const auto& state : states_)
    offsets.push_back((is_here(state) ? here : there).reserve(state.tensor.desc().bytes()));
  over_there_ = device_.context->allocate(there.bytes());
  here_ = Buffer::host(here.bytes());
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const Buffer& memory = is_here(states_[i]) ? here_ : over_there_;
    copies_[i].tensor = Tensor(states_[i].tensor.desc(), memory.data() + offsets[i], states_[i].tensor.device());
  }
}

void StateCopy::take() {
  for (std::size_t i = 0; i < states_.size(); ++i) copy(states_[i], copies_[i], device_);
}

void StateCopy::give_back() const {
  for (std::size_t i = 0; i < states_.size(); ++i) copy(copies_[i], states_[i], device_);
}

StatesOnHost::StatesOnHost(std::span<const State> states, ComputeDevice device)
    : device_(std::move(device)), there_(states.begin(), states.end()), here_(there_) {
  ArenaPlan plan;
  std::vector<std::size_t> offsets;
  for (const auto& state : there_) offsets.push_back(is_here(state) ? 0 : plan.reserve(state.tensor.desc().bytes()));
  memory_ = device_.context->allocate_staging(plan.bytes());
  for (std::size_t i = 0; i < there_.size(); ++i)
    if (!is_here(there_[i])) here_[i].tensor = Tensor(there_[i].tensor.desc(), memory_.data() + offsets[i]);
}

void StatesOnHost::fetch() {
  for (std::size_t i = 0; i < there_.size(); ++i)
    if (!is_here(there_[i])) copy(there_[i], here_[i], device_);
}

void StatesOnHost::send() const {
  for (std::size_t i = 0; i < there_.size(); ++i)
    if (!is_here(there_[i])) copy(here_[i], there_[i], device_);
}

}  // namespace ronda
