#include <ronda/core/clock.hpp>
#include <ronda/runtime/strategy/parts/parts_exchange.hpp>

#include <cstring>
#include <span>

namespace ronda {

PartsExchange::PartsExchange(Communicator group, std::unique_ptr<GradientExchange> part)
    : group_(std::move(group)),
      part_(std::move(part)),
      sums_(group_.plan(AllreduceSpec{.tensors = {Tensor(std::span(&part_->traits().sums->loss, StepControl::count))},
                                      .label = "the parts' sums of a step"})),
      norms_(group_, "the parts' squared norms"),
      spoiled_(group_) {}

void PartsExchange::wait_for(Event event) {
  const double begin = steady_seconds();
  event.wait();
  exposed_seconds_ += steady_seconds() - begin;
}

void PartsExchange::reduce(Sums wanted, Stream& stream) {
  part_->reduce(wanted, stream);
  if (tell_) tell_alike();
  wait_for(sums_->start());
}

void PartsExchange::keep_alike(std::vector<Tensor> gradients) {
  alike_ = std::move(gradients);
  std::size_t bytes = 0;
  for (const Tensor& gradient : alike_) bytes += gradient.desc().bytes();
  if (bytes == 0 || group_.size() == 1) return;
  alike_memory_ = group_.allocate(bytes, Memory::node_shared);
  const Tensor all(std::span(reinterpret_cast<float*>(alike_memory_.data()), bytes / sizeof(float)));
  tell_ = group_.plan(BroadcastSpec{.tensor = all, .root = 0, .label = "the gradients that all parts have"});
}

void PartsExchange::tell_alike() {
  const auto copy_each = [this](bool out) {
    std::byte* told = alike_memory_.data();
    for (const Tensor& gradient : alike_) {
      std::memcpy(out ? told : gradient.data(), out ? gradient.data() : told, gradient.desc().bytes());
      told += gradient.desc().bytes();
    }
  };
  if (group_.rank() == 0) copy_each(true);
  wait_for(tell_->start());
  if (group_.rank() != 0) copy_each(false);
}

void PartsExchange::publish(UpdateOutcome* outcome, Stream& stream) {
  part_->publish(outcome, stream);
  wait_for(spoiled_.start(*outcome, stream));
  spoiled_.set(outcome);
}

}  // namespace ronda
