#include <ronda/core/clock.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/floats.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/runtime/strategy/exchange/arena_shares.hpp>
#include <ronda/runtime/strategy/parameter_server/own_pace_server.hpp>
#include <ronda/runtime/strategy/step/own_steps.hpp>

#include <algorithm>
#include <span>
#include <utility>

namespace ronda {

OwnPaceServer::OwnPaceServer(const Communicator& communicator, const KeyValueOptions& how,
                             const std::vector<GradientSlot>& slots, const Replica& replica,
                             const FusionOptions& options)
    : OwnPace(communicator, how, slots, replica, options),
      arriving_(options.compression, pieces_, communicator_.rank(),
                shares_[static_cast<std::size_t>(communicator_.rank())]),
      queue_(how, static_cast<std::size_t>(roles_.workers())),
      fates_(static_cast<std::size_t>(roles_.workers())),
      ballot_(StepControl::count + static_cast<std::size_t>(roles_.workers())) {
  agree(communicator_, [&] {  // sends and receives are planned by each rank for itself
    for (int i = 0; i < roles_.workers(); ++i) {
      workers_.push_back(std::make_unique<Worker>(communicator_, roles_.rank_of_worker(i), i));
      plan_worker(*workers_.back());
    }
  });
  if (roles_.servers() == 1) return;
  told_ = alike_.plan(AllreduceSpec{.tensors = {Tensor(std::span(ballot_))}, .label = "whose gradients a step takes"});
  spoiled_ = std::make_unique<SpoiledAnywhere>(alike_);
  all_sums_ = alike_.plan(AllgatherSpec{floats_in(replica.gradients(), {0, replica.plan().elements()}),
                                        sizes_of_servers(shares_, roles_), "the sums of gradients"});
}

void OwnPaceServer::plan_worker(Worker& worker) {
  const std::size_t pieces = arriving_.pieces().size();
  worker.gradients = Buffer::host(arriving_.memory());
  worker.receives = std::make_unique<MessageWindow>(
      communicator_, std::vector{pieces + 1}, [this, &worker, pieces](std::size_t /*lane*/, std::size_t number) {
        if (number == pieces) return communicator_.plan(ReceiveSpec{bytes_of(worker.push), worker.rank, "a push"});
        return communicator_.plan(ReceiveSpec{arriving_.message(number, worker.gradients.data()), worker.rank,
                                              label_of_bucket(arriving_.pieces()[number].bucket)});
      });
}

/// As GradientArrivals does.
void OwnPaceServer::visit(StateVisitor& visitor) {
  if (keeps_lost(arriving_.compression()))
    visitor.visit({"pushes.runs", Tensor(std::span(&runs_, 1)), Scope::per_rank});
}

void OwnPaceServer::set_updates(std::uint64_t /*updates*/) {
  if (steps() > 0) throw LogicError("parameters of servers are set after a step that settles: synchronise_next");
  differs_ = false;
}

std::size_t OwnPaceServer::memory() const noexcept {
  std::size_t bytes = 0;
  for (const auto& worker : workers_) bytes += worker->gradients.bytes();
  return bytes + pool_.bytes() + records_.capacity() * sizeof(Record);
}

// ---- which gradients ------------------------------------------------------------------------------------------------

void OwnPaceServer::reduce(Sums wanted, Stream& stream) {
  const double begin = steady_seconds();
  if (leads()) pick(stream);
  tell_servers(stream);
  wait_for([&](const Worker& worker) { return fate_of(worker) != Fate::waits; }, stream);
  add_gradients(wanted, stream);
  exposed_seconds_ += steady_seconds() - begin;
}

/// Lets its messages come, when it has been answered. Whether its push has come.
bool OwnPaceServer::move_on(Worker& worker, Stream& stream) {
  if (worker.waits || worker.answers.sending()) return false;
  if (!worker.expected) worker.receives->start(stream);
  worker.expected = true;
  return worker.receives->move_on();
}

/// Until the pushes of these workers have come; lets all others come too.
template <class Chosen>
void OwnPaceServer::wait_for(const Chosen& chosen, Stream& stream) {
  communicator_.wait_until([&] {
    bool all_come = true;
    for (const auto& worker : workers_) {
      const bool come = move_on(*worker, stream);
      all_come = all_come && (come || !chosen(*worker));
    }
    return all_come;
  });
}

/// The leader's: waits until there are as many gradients as a step takes. Gradients of no samples, of a small batch, do
/// not count among the first K.
void OwnPaceServer::pick(Stream& stream) {
  communicator_.wait_until([&] {
    for (const auto& worker : workers_)
      if (move_on(*worker, stream) && !queue_.has_push(worker->number))
        queue_.push({.asked = {.worker = worker->number},
                     .version = worker->push.step,
                     .counts = worker->push.sums.weight != 0,  // NaN counts
                     .idle = worker->push.idle != 0});
    return queue_.decide(fates_);
  });
  StepControl sums;
  for (const auto& worker : workers_) {
    if (queue_.has_push(worker->number)) worker->flags = worker->push.sums.flags;
    StepControl mine = worker->push.sums;
    if (fate_of(*worker) != Fate::taken) mine = {};
    mine.flags = worker->flags;
    add(sums, mine);
  }
  add(sums, StepControl{.flags = sums_.flags});
  sums_ = sums;
}

/// The leader's sums and fates; flags of all servers.
void OwnPaceServer::tell_servers(Stream& stream) {
  if (!told_) return;
  std::ranges::fill(ballot_, 0.0);
  const StepControl mine = leads() ? sums_ : StepControl{.flags = sums_.flags};
  std::copy_n(&mine.loss, StepControl::count, ballot_.begin());
  const auto fates = std::span(ballot_).subspan(StepControl::count);
  if (leads()) std::ranges::transform(fates_, fates.begin(), [](Fate fate) { return static_cast<double>(fate); });
  const Event told = told_->start();
  communicator_.wait_until([&] {
    for (const auto& worker : workers_) static_cast<void>(move_on(*worker, stream));
    return told.ready();
  });
  std::copy_n(ballot_.begin(), StepControl::count, &sums_.loss);
  std::ranges::transform(fates, fates_.begin(), [](double fate) { return static_cast<Fate>(static_cast<int>(fate)); });
}

/// In the order of ranks; packed ones are added up as they are unpacked.
void OwnPaceServer::add_gradients(Sums wanted, Stream& stream) {
  const Range share = shares_[static_cast<std::size_t>(communicator_.rank())];
  taken_.clear();
  for (const auto& worker : workers_)
    if (fate_of(*worker) == Fate::taken) taken_.push_back(worker->gradients.data());
  traffic_.pushed_bytes += taken_.size() * arriving_.bytes();
  updated_ = part_of_arena(replica_.dense_arena(), share);
  if (wanted == Sums::of_all || arriving_.packed()) {
    arriving_.sum(taken_, reinterpret_cast<float*>(replica_.gradients().data()) + share.begin, stream.threads());
  } else {
    more_gradients_.clear();
    for (const std::byte* push : taken_) more_gradients_.push_back(reinterpret_cast<const float*>(push));
    updated_.gradients = more_gradients_.front();
    updated_.more_gradients = std::span(more_gradients_).subspan(1);
  }
  if (wanted == Sums::of_all && all_sums_) stream.wait(all_sums_->start(stream.record()));
}

// ---- answers --------------------------------------------------------------------------------------------------------

void OwnPaceServer::publish(UpdateOutcome* outcome, Stream& stream) {
  const double begin = steady_seconds();
  if (spoiled_) {
    stream.wait(spoiled_->start(*outcome, stream));
    spoiled_->set(outcome);
  }
  const bool settling = settles(*outcome);
  Record record{.sums = sums_, .outcome = *outcome, .samples_of = steps(), .settles = settling ? 1U : 0U};
  for (const auto& worker : workers_)
    if (how_.asynchronous && fate_of(*worker) == Fate::taken) record.samples_of = worker->push.samples_of;
  end_step(record, steps());
  records_.push_back(record);
  note_fates();
  published_.expire();
  if (settling) wait_for_all(stream);
  answer_all(settling, stream);
  if (settling) {
    gather_values(stream);
    begin_anew();
  }
  exposed_seconds_ += steady_seconds() - begin;
}

/// Where ranks do together what they do not do after each step. When all parts of a checkpoint are written, the next
/// one may begin.
bool OwnPaceServer::settles(const UpdateOutcome& outcome) const {
  const StepFlags& flags = sums_.flags;
  const bool all_written = flags.written + flags.unwritten >= communicator_.size();
  return asked_ || all_written || flags.stop > 0 || flags.leave > 0 || flags.save > 0 || flags.unwritten > 0 ||
         outcome.finite == 0 || outcome.spoiled != 0;
}

/// The step is over.
void OwnPaceServer::note_fates() {
  for (const auto& worker : workers_) {
    const Fate fate = fate_of(*worker);
    if (fate == Fate::waits) continue;
    worker->expected = false;
    worker->waits = true;
    worker->dropped = fate == Fate::late;
    if (worker->dropped) ++traffic_.dropped;
    if (fate != Fate::taken) continue;
    worker->taken = steps();
    end_ = worker->push.end;
    if (how_.asynchronous) count_age(traffic_.staleness, steps() - worker->heard, ServerTraffic::ages);
  }
  queue_.advance(fates_);
  for (const auto& worker : workers_)
    if (how_.asynchronous && !has_samples(*worker)) queue_.leave(worker->number);
}

/// Asynchronous: whether the epoch has a step whose samples the worker computes now or next.
bool OwnPaceServer::has_samples(const Worker& worker) const {
  const auto number = static_cast<std::uint64_t>(worker.number);
  return (queue_.taken_of(worker.number) == 0 ? number : worker.taken + workers_.size()) < end_;
}

/// What comes now is too late.
void OwnPaceServer::wait_for_all(Stream& stream) {
  wait_for([](const Worker& worker) { return !worker.waits; }, stream);
  for (const auto& worker : workers_) {
    if (worker->waits) continue;
    worker->expected = false;
    worker->waits = true;
    worker->dropped = worker->push.idle == 0;
    if (worker->dropped) ++traffic_.dropped;
  }
}

/// All that wait, if the step settles; otherwise not those that are idle or too far ahead.
void OwnPaceServer::answer_all(bool settling, Stream& stream) {
  for (const auto& worker : workers_)
    if (worker->waits && (settling || queue_.may_pull(worker->number))) answer(*worker, stream);
  if (settling)
    communicator_.wait_until(
        [&] { return std::ranges::none_of(workers_, [](const auto& worker) { return worker->answers.sending(); }); });
  forget_records();
}

void OwnPaceServer::answer(Worker& worker, Stream& stream) {
  const Range share = shares_[static_cast<std::size_t>(communicator_.rank())];
  const auto values = reinterpret_cast<const float*>(replica_.values().data()) + share.begin;
  const auto copy = published_.copy_of({values, share.size()}, stream.threads());
  const auto kind = worker.dropped ? MessageKind::dropped : MessageKind::done;
  worker.answers.send({.kind = kind, .version = worker.taken, .bytes = share.size() * sizeof(float)},
                      std::as_bytes(std::span(copy.get(), share.size())), copy);
  if (leads()) {
    const auto first = records_.begin() + static_cast<std::ptrdiff_t>(worker.heard - forgotten_);
    const auto news = std::make_shared<const std::vector<Record>>(first, records_.end());
    const auto bytes = std::as_bytes(std::span(*news));
    worker.answers.send({.bytes = bytes.size()}, bytes, news);
  }
  traffic_.pulled_bytes += share_bytes(communicator_.rank());
  worker.heard = steps();
  worker.waits = false;
}

/// Those that all workers have, once they are the most: an epoch may be long.
void OwnPaceServer::forget_records() {
  std::uint64_t known = steps();
  for (const auto& worker : workers_) known = std::min(known, worker->heard);
  const auto count = static_cast<std::size_t>(known - forgotten_);
  if (2 * count <= records_.size()) return;
  records_.erase(records_.begin(), records_.begin() + static_cast<std::ptrdiff_t>(count));
  forgotten_ = known;
}

void OwnPaceServer::begin_anew() {
  records_.clear();
  forgotten_ = 0;
  queue_.restart();
  for (const auto& worker : workers_) {
    worker->heard = worker->taken = 0;
    worker->flags = {};
  }
}

}  // namespace ronda
