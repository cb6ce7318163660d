#include <ronda/core/clock.hpp>
#include <ronda/runtime/strategy/exchange/leave_notice.hpp>

#include <algorithm>
#include <new>
#include <span>

namespace ronda {
namespace {

constexpr double seconds_between = 1;

}  // namespace

LeaveNotice::LeaveNotice(Communicator communicator)
    : ranks_(communicator.size()),
      memory_(communicator.allocate(sizeof(Numbers), Memory::node_shared)),
      sum_(communicator.plan(AllreduceSpec{.tensors = {Tensor(std::span(reinterpret_cast<double*>(memory_.data()), 2))},
                                           .label = "whether a rank asks to leave"})) {
  static_assert(sizeof(Numbers) == 2 * sizeof(double));
  new (memory_.data()) Numbers();
}

bool LeaveNotice::after_step(bool asks, std::uint64_t step, std::uint64_t period) {
  if (step == 1) started_ = 0;
  bool leaves = false;
  if (in_flight_ && step == started_ + interval_) {
    finish();
    leaves = numbers().leave > 0;
    choose_interval();
  }
  if (!in_flight_ && !leaves && interval_ < period - step) start(asks, step);
  return leaves;
}

void LeaveNotice::start(bool asks, std::uint64_t step) {
  const double now = steady_seconds();
  if (started_ > 0) seconds_per_step_ = (now - started_at_) / static_cast<double>(step - started_);
  numbers() = {.leave = asks ? 1.0 : 0.0, .seconds = seconds_per_step_};
  arrival_ = sum_->start();
  in_flight_ = true;
  started_ = step;
  started_at_ = now;
}

void LeaveNotice::choose_interval() {
  const double mean = numbers().seconds / ranks_, most = 2 * static_cast<double>(interval_);
  const double wanted = mean * most > seconds_between ? seconds_between / mean : most;
  interval_ = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(wanted));
}

void LeaveNotice::poll() const {
  if (in_flight_) static_cast<void>(arrival_.ready());
}

void LeaveNotice::finish() {
  if (!in_flight_) return;
  arrival_.wait();
  in_flight_ = false;
}

}  // namespace ronda
