#include <ronda/core/clock.hpp>
#include <ronda/core/error.hpp>
#include <ronda/runtime/strategy/exchange/arena_shares.hpp>
#include <ronda/runtime/strategy/parameter_server/own_pace_worker.hpp>

#include <span>
#include <utility>

namespace ronda {

OwnPaceWorker::OwnPaceWorker(const Communicator& communicator, const KeyValueOptions& how,
                             const std::vector<GradientSlot>& slots, const Replica& replica,
                             const FusionOptions& options)
    : OwnPace(communicator, how, slots, replica, options),
      pushes_(communicator_, roles_.index_of(communicator_.rank()), slots, buckets_, pieces_, replica.gradients(),
              options) {
  agree(communicator_, [&] {  // sends and receives are planned by each rank for itself
    for (int i = 0; i < roles_.servers(); ++i) {
      const int rank = roles_.rank_of_server(i);
      servers_.push_back(std::make_unique<Server>(communicator_, rank));
      servers_.back()->push = communicator_.plan(SendSpec{bytes_of(push_), rank, "a push"});
    }
  });
  begin_anew();
}

void OwnPaceWorker::begin_anew() {
  steps_ = 0;
  next_ = static_cast<std::uint64_t>(roles_.index_of(communicator_.rank()));
}

void OwnPaceWorker::set_updates(std::uint64_t /*updates*/) {
  if (!known_.empty()) throw LogicError("parameters of workers are set after a step that settles: synchronise_next");
  differs_ = false;
  begin_anew();
}

std::optional<std::size_t> OwnPaceWorker::samples_for(std::size_t step, std::size_t steps) {
  static_cast<void>(OwnPace::samples_for(step, steps));
  if (!known_.empty()) return std::nullopt;
  if (!how_.asynchronous) return step;
  const std::size_t place = step + static_cast<std::size_t>(next_ - steps_);
  end_ = steps_ + (steps - step);
  idle_ = place >= steps;
  return idle_ ? std::nullopt : std::optional(place);
}

void OwnPaceWorker::begin() {
  late_ = !known_.empty();
  late_ ? pushes_.skip() : pushes_.begin();
}

void OwnPaceWorker::mark_ready(ParameterId id, Stream& stream) {
  if (!late_) pushes_.mark_ready(id, stream);
}

void OwnPaceWorker::reduce(Sums /*wanted*/, Stream& stream) {
  const double begin = steady_seconds();
  if (!late_) ask(stream);
  sums_ = known_.front().sums;
  exposed_seconds_ += steady_seconds() - begin;
}

void OwnPaceWorker::ask(Stream& stream) {
  push_ = {sums_, steps_, next_, end_, idle_ ? 1U : 0U};
  const bool pushes_gradients = !std::exchange(idle_, false);
  if (!pushes_gradients)
    pushes_.start_all(stream);  // a server has a place for them, and does not look
  else
    pushes_.finish(stream);
  pushes_.wait();  // messages to a server come in the order in which they begin
  std::vector<Event> sent;
  for (const auto& server : servers_) sent.push_back(server->push->start(stream.record()));
  const MessageHeader answer = hear(*servers_.front());
  for (const auto& server : std::span(servers_).subspan(1)) static_cast<void>(hear(*server));
  for (const Event& event : sent) stream.wait(event);
  traffic_.pushed_bytes += pushes_.bytes();
  if (pushes_gradients && !was_applied(answer)) pushes_.take_back(stream);
  next_ = answer.version + static_cast<std::uint64_t>(roles_.workers());
}

/// Whether the gradients that were pushed last changed the parameters: not where they came too late, or the step that
/// took them was skipped for all.
bool OwnPaceWorker::was_applied(const MessageHeader& answer) const {
  return answer.kind == MessageKind::done &&
         known_[static_cast<std::size_t>(answer.version - steps_)].outcome.applied != 0;
}

MessageHeader OwnPaceWorker::receive(Server& server, Channel::MemoryFor memory_for) {
  const MessageHeader* header = nullptr;
  server.answers.listen();
  communicator_.wait_until([&] { return (header = server.answers.receive(memory_for)) != nullptr; });
  return *header;
}

/// Returns the header of the answer.
MessageHeader OwnPaceWorker::hear(Server& server) {
  const Tensor values = floats_in(replica_.values(), shares_[static_cast<std::size_t>(server.rank)]);
  const MessageHeader answer =
      receive(server, [&](const MessageHeader&) { return std::as_writable_bytes(values.as<float>()); });
  traffic_.pulled_bytes += answer.bytes;
  if (&server != servers_.front().get()) return answer;
  std::vector<Record> records;
  receive(server, [&](const MessageHeader& news) {
    records.resize(static_cast<std::size_t>(news.bytes / sizeof(Record)));
    return std::as_writable_bytes(std::span(records));
  });
  known_.assign(records.begin(), records.end());
  return answer;
}

void OwnPaceWorker::publish(UpdateOutcome* outcome, Stream& /*stream*/) {
  const Record record = known_.front();
  known_.pop_front();
  *outcome = record.outcome;
  end_step(record, steps_);
  ++steps_;
  if (settled_) begin_anew();
}

}  // namespace ronda
