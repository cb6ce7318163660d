#include <ronda/core/clock.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/floats.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/runtime/strategy/exchange/arena_shares.hpp>
#include <ronda/runtime/strategy/parameter_server/own_pace_server.hpp>
#include <ronda/runtime/strategy/step/own_steps.hpp>

#include <algorithm>
#include <limits>
#include <utility>

namespace ronda {

OwnPaceServer::OwnPaceServer(const Communicator& communicator, const KeyValueOptions& how,
                             const std::vector<GradientSlot>& slots, const Replica& replica,
                             const FusionOptions& options)
    : OwnPace(communicator, how, slots, replica, options),
      arriving_(options.compression, pieces_, communicator_.rank(),
                shares_[static_cast<std::size_t>(communicator_.rank())]),
      ballot_(StepControl::count + static_cast<std::size_t>(roles_.workers())) {
  agree(communicator_, [&] {  // sends and receives are planned by each rank for itself
    for (int i = 0; i < roles_.workers(); ++i) {
      workers_.push_back(
          std::make_unique<Worker>(Worker{.rank = roles_.rank_of_worker(i), .number = static_cast<std::size_t>(i)}));
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
  const Range share = shares_[static_cast<std::size_t>(communicator_.rank())];
  const std::size_t pieces = arriving_.pieces().size(), bytes = share.size() * sizeof(float);
  worker.gradients = Buffer::host(arriving_.memory());
  if (arriving_.memory() < bytes) worker.values = Buffer::host(bytes);
  worker.receives = std::make_unique<MessageWindow>(
      communicator_, std::vector{pieces + 1}, [this, &worker, pieces](std::size_t /*lane*/, std::size_t number) {
        if (number == pieces) return communicator_.plan(ReceiveSpec{bytes_of(worker.push), worker.rank, "a push"});
        return communicator_.plan(ReceiveSpec{arriving_.message(number, worker.gradients.data()), worker.rank,
                                              label_of_bucket(arriving_.pieces()[number].bucket)});
      });
  worker.send_answer = communicator_.plan(SendSpec{bytes_of(worker.answer), worker.rank, "the answer to a push"});
  if (share.size() > 0)
    worker.send_values = communicator_.plan(
        SendSpec{Tensor(std::span(worker.values_to_send(), share.size())), worker.rank, "the new parameters"});
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
  for (const auto& worker : workers_) bytes += worker->gradients.bytes() + worker->values.bytes();
  return bytes + records_.capacity() * sizeof(Record);
}

// ---- which gradients ------------------------------------------------------------------------------------------------

void OwnPaceServer::reduce(Sums wanted, Stream& stream) {
  const double begin = steady_seconds();
  if (leads()) pick(stream);
  tell_servers(stream);
  wait_for([](const Worker& worker) { return worker.fate != Fate::none; }, stream);
  add_gradients(wanted, stream);
  exposed_seconds_ += steady_seconds() - begin;
}

/// Whether all of the last answer is sent. Its news, many after a long absence, are freed then.
bool OwnPaceServer::is_answered(Worker& worker) {
  while (!worker.sending.empty() && worker.sending.back().ready()) worker.sending.pop_back();
  if (!worker.sending.empty()) return false;
  worker.send_news.reset();
  worker.news = std::vector<Record>();
  return true;
}

/// Lets its messages come, when it has been answered. Whether its push has come.
bool OwnPaceServer::move_on(Worker& worker, Stream& stream) {
  if (worker.waits || !is_answered(worker)) return false;
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

/// The leader's: waits until there are as many gradients as a step takes.
void OwnPaceServer::pick(Stream& stream) {
  communicator_.wait_until([&] {
    for (const auto& worker : workers_)
      if (move_on(*worker, stream) && !worker->queued) {
        order_.push_back(worker->number);
        worker->queued = true;
      }
    return decide_fates();
  });
  StepControl sums;
  for (const auto& worker : workers_) {
    if (worker->queued) worker->flags = worker->push.sums.flags;
    StepControl mine = worker->push.sums;
    if (worker->fate != Fate::taken) mine = {};
    mine.flags = worker->flags;
    add(sums, mine);
  }
  add(sums, StepControl{.flags = sums_.flags});
  sums_ = sums;
  std::erase_if(order_, [&](std::size_t number) {
    Worker& worker = *workers_[number];
    worker.queued = worker.fate == Fate::none;
    return !worker.queued;
  });
}

/// Of the pushes that have come; whether the step has its gradients. Those without weight, of workers that have none of
/// a small batch, do not count among the first K, unless no others are to come.
bool OwnPaceServer::decide_fates() {
  const std::size_t wanted = how_.asynchronous ? 1 : static_cast<std::size_t>(how_.replicas_to_aggregate);
  std::size_t taken = 0;
  for (const std::size_t number : order_) {
    Worker& worker = *workers_[number];
    worker.fate = Fate::none;
    if (worker.push.idle != 0)
      worker.fate = Fate::idle;
    else if (!how_.asynchronous && worker.push.step < steps())
      worker.fate = Fate::late;
    else if (taken < wanted) {
      worker.fate = Fate::taken;
      taken += how_.asynchronous || worker.push.sums.weight != 0 ? 1 : 0;  // NaN counts
    }
  }
  return taken == wanted || (!how_.asynchronous && order_.size() == workers_.size());
}

/// The leader's sums and fates; flags of all servers.
void OwnPaceServer::tell_servers(Stream& stream) {
  if (!told_) return;
  std::ranges::fill(ballot_, 0.0);
  const StepControl mine = leads() ? sums_ : StepControl{.flags = sums_.flags};
  std::copy_n(&mine.loss, StepControl::count, ballot_.begin());
  if (leads())
    for (const auto& worker : workers_)
      ballot_[StepControl::count + worker->number] = static_cast<double>(worker->fate);
  const Event told = told_->start();
  communicator_.wait_until([&] {
    for (const auto& worker : workers_) static_cast<void>(move_on(*worker, stream));
    return told.ready();
  });
  std::copy_n(ballot_.begin(), StepControl::count, &sums_.loss);
  for (const auto& worker : workers_)
    worker->fate = static_cast<Fate>(static_cast<std::uint8_t>(ballot_[StepControl::count + worker->number]));
}

/// In the order of ranks; packed ones are added up as they are unpacked.
void OwnPaceServer::add_gradients(Sums wanted, Stream& stream) {
  const Range share = shares_[static_cast<std::size_t>(communicator_.rank())];
  taken_.clear();
  for (const auto& worker : workers_)
    if (worker->fate == Fate::taken) taken_.push_back(worker->gradients.data());
  traffic_.pushed_bytes += taken_.size() * arriving_.bytes();
  updated_ = replica_.dense_arena();
  updated_.values += share.begin;
  updated_.gradients += share.begin;
  updated_.count = share.size();
  if (wanted == Sums::of_all || arriving_.packed()) {
    add_up(stream);
  } else {
    more_gradients_.clear();
    for (const std::byte* push : taken_) more_gradients_.push_back(reinterpret_cast<const float*>(push));
    updated_.gradients = more_gradients_.front();
    updated_.more_gradients = std::span(more_gradients_).subspan(1);
  }
  if (wanted == Sums::of_all && all_sums_) stream.wait(all_sums_->start(stream.record()));
}

/// In the arena.
void OwnPaceServer::add_up(Stream& stream) {
  const Range share = shares_[static_cast<std::size_t>(communicator_.rank())];
  float* const sums = reinterpret_cast<float*>(replica_.gradients().data()) + share.begin;
  for (const std::byte* push : taken_) {
    const auto* const gradients = reinterpret_cast<const float*>(push);
    const bool first = push == taken_.front();
    if (arriving_.packed())
      first ? arriving_.unpack(push, sums, stream.threads()) : arriving_.unpack_and_add(push, sums, stream.threads());
    else if (first)
      std::copy_n(gradients, share.size(), sums);
    else
      add_floats(gradients, sums, share.size(), stream.threads());
  }
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
    if (how_.asynchronous && worker->fate == Fate::taken) record.samples_of = worker->push.samples_of;
  note_fates();
  end_step(record, steps());
  records_.push_back(record);
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

void OwnPaceServer::note_fates() {
  for (const auto& worker : workers_) {
    if (worker->fate == Fate::none) continue;
    worker->expected = false;
    worker->waits = true;
    worker->idle = worker->fate == Fate::idle;
    worker->dropped = worker->fate == Fate::late;
    if (worker->dropped) ++traffic_.dropped;
    if (worker->fate == Fate::taken) {
      worker->taken = steps();
      ++worker->pushes;
      end_ = worker->push.end;
      worker->idle = how_.asynchronous && worker->taken + workers_.size() >= end_;  // no step is left for it
      const auto age = static_cast<std::size_t>(steps() - worker->heard);
      if (!traffic_.staleness.empty()) ++traffic_.staleness[std::min(age, traffic_.staleness.size() - 1)];
    }
    worker->fate = Fate::none;
  }
  for (const auto& worker : workers_)
    if (how_.asynchronous && worker->pushes == 0 && worker->number >= end_) worker->idle = true;
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

/// Of workers that still compute.
std::uint64_t OwnPaceServer::fewest_pushes() const {
  std::uint64_t fewest = std::numeric_limits<std::uint64_t>::max();
  for (const auto& worker : workers_)
    if (!worker->idle) fewest = std::min(fewest, worker->pushes);
  return fewest;
}

/// All that wait; where the step does not settle, but for idle workers and those that are too far ahead.
void OwnPaceServer::answer_all(bool settling, Stream& stream) {
  const std::uint64_t fewest = how_.max_staleness && !settling ? fewest_pushes() : 0;
  const auto is_held = [&](const Worker& worker) {
    return how_.max_staleness && worker.pushes > fewest && worker.pushes - fewest > *how_.max_staleness;
  };
  for (const auto& worker : workers_)
    if (worker->waits && (settling || (!worker->idle && !is_held(*worker)))) answer(*worker, stream);
  if (settling)
    communicator_.wait_until(
        [&] { return std::ranges::all_of(workers_, [](const auto& worker) { return is_answered(*worker); }); });
  forget_records();
}

/// From copies. Its gradients are done with.
void OwnPaceServer::answer(Worker& worker, Stream& stream) {
  const Range share = shares_[static_cast<std::size_t>(communicator_.rank())];
  worker.answer = {leads() ? steps() - worker.heard : 0, worker.taken, worker.dropped ? 1U : 0U};
  worker.sending.push_back(worker.send_answer->start(stream.record()));
  if (leads()) {
    worker.news.assign(records_.begin() + static_cast<std::ptrdiff_t>(worker.heard - forgotten_), records_.end());
    worker.send_news =
        communicator_.plan(SendSpec{bytes_of(std::span(worker.news)), worker.rank, "the steps since the last answer"});
    worker.sending.push_back(worker.send_news->start(stream.record()));
  }
  if (worker.send_values) {
    const float* const values = reinterpret_cast<const float*>(replica_.values().data()) + share.begin;
    float* const copy = worker.values_to_send();
    parallel_for(stream.threads(), share.size(),
                 [&](Range part) { std::copy_n(values + part.begin, part.size(), copy + part.begin); });
    worker.sending.push_back(worker.send_values->start(stream.record()));
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
  order_.clear();
  for (const auto& worker : workers_) {
    worker->queued = false;
    worker->heard = worker->taken = worker->pushes = 0;
    worker->idle = false;
    worker->flags = {};
  }
}

}  // namespace ronda
