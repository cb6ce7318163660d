#include <ronda/core/tensor.hpp>
#include <ronda/runtime/strategy/parameter_server/served_control.hpp>

#include <span>
#include <utility>

namespace ronda {
namespace {

constexpr const char* label = "the step's sums";

Tensor numbers_of(StepControl& control) { return Tensor(std::span(&control.loss, StepControl::count)); }

}  // namespace

ServedControl::ServedControl(Communicator ranks, Communicator alike, const Roles& roles)
    : ranks_(std::move(ranks)), roles_(roles) {
  agree(ranks_, [&] {  // sends and receives are planned by each rank for itself
    if (leads()) plan_leader();
    if (is_server()) return;
    send_ = ranks_.plan(SendSpec{numbers_of(told_), leader(), label});
    receive_ = ranks_.plan(ReceiveSpec{numbers_of(control_), leader(), label});
  });
  if (is_server() && alike.size() > 1)
    among_servers_ = alike.plan(AllreduceSpec{.tensors = {numbers_of(told_)}, .label = label});
}

void ServedControl::plan_leader() {
  const auto workers = static_cast<std::size_t>(roles_.workers());
  of_workers_.resize(workers);
  receives_ = std::make_unique<MessageWindow>(
      ranks_, std::vector<std::size_t>(workers, 1), [this](std::size_t worker, std::size_t /*number*/) {
        return ranks_.plan(
            ReceiveSpec{numbers_of(of_workers_[worker]), roles_.rank_of_worker(static_cast<int>(worker)), label});
      });
  answers_ = std::make_unique<MessageWindow>(
      ranks_, std::vector<std::size_t>(workers, 1), [this](std::size_t worker, std::size_t /*number*/) {
        return ranks_.plan(SendSpec{numbers_of(told_), roles_.rank_of_worker(static_cast<int>(worker)), label});
      });
}

void ServedControl::start(Stream& stream) {
  stage_ = Stage::gathering;
  if (leads()) {
    answers_->wait();  // of the last step: workers have them, or they would not be here
    receives_->start(stream);
  }
  if (is_server()) return;
  stream.wait(sent_);
  told_ = control_;
  sent_ = send_->start(stream.record());
  received_ = receive_->start(stream.record());
}

bool ServedControl::move_on(Stream& stream) {
  if (!is_server()) return received_.ready();
  if (stage_ == Stage::gathering && (!leads() || receives_->move_on())) add_up(stream);
  if (stage_ == Stage::telling_servers && received_.ready()) {
    stage_ = Stage::done;
    control_ = told_;
    if (leads()) answers_->start(stream);
  }
  if (stage_ == Stage::done && leads()) static_cast<void>(answers_->move_on());
  return stage_ == Stage::done;
}

/// On a server: what it knows of all ranks, for the others.
void ServedControl::add_up(Stream& stream) {
  told_ = {};
  for (const StepControl& worker : of_workers_) add(told_, worker);
  add(told_, control_);
  received_ = among_servers_ ? among_servers_->start(stream.record()) : Event();
  stage_ = Stage::telling_servers;
}

}  // namespace ronda
