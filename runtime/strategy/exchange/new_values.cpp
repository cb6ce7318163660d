#include <ronda/core/clock.hpp>
#include <ronda/runtime/strategy/exchange/arena_shares.hpp>
#include <ronda/runtime/strategy/exchange/new_values.hpp>

#include <cmath>
#include <cstdint>
#include <span>
#include <utility>

namespace ronda {
namespace {

Tensor flat(const Buffer& arena, DType dtype, std::size_t count) {
  return {{Shape{static_cast<std::int64_t>(count)}, dtype, {}}, arena.data(), arena.device()};
}

/// The ranks of this rank's node.
Communicator ranks_on_node(const Communicator& communicator) {
  return communicator.split(communicator.topology().node, communicator.rank());
}

/// Collective.
std::vector<std::size_t> elements_by_node(Communicator& communicator, std::size_t count) {
  std::vector<std::int64_t> nodes(static_cast<std::size_t>(communicator.size()));
  auto mine = static_cast<std::int64_t>(communicator.topology().node);
  communicator.allgather(Tensor(std::span(&mine, 1)), Tensor(std::span(nodes)));
  std::vector<std::size_t> elements;
  agree(communicator, [&] { elements = share_sizes_by_node(count, nodes); });
  return elements;
}

/// Nothing where it has not run.
std::vector<std::string> report_of(const Collective& gathering, const std::string& what, std::size_t bytes) {
  const CollectiveTimes times = gathering.times();
  if (times.runs == 0) return {};
  return {what + ": " + std::to_string(bytes) + " bytes by " + std::string(gathering.algorithm()) + " took " +
          std::to_string(std::llround(times.total / static_cast<double>(times.runs) * 1e6)) + " us in the mean"};
}

}  // namespace

void WrittenValues::publish(UpdateOutcome* outcome, Stream& /*stream*/) {
  outcome->spoiled = meeting_.meet(outcome->spoiled == 0) ? 0 : 1;
}

GatheredValues::GatheredValues(Communicator communicator, const Replica& replica) : spoiled_(communicator) {
  const ReplicaPlan& plan = replica.plan();
  const std::size_t count = plan.dense_elements();
  const auto counts = share_sizes(count, static_cast<std::size_t>(communicator.size()));
  const auto add = [&](const Tensor& all) {
    gatherings_.push_back({communicator.plan(AllgatherSpec{all, counts, "the new parameters"}), all.desc().bytes()});
  };
  add(flat(replica.trained(), DType::float32, count));
  if (plan.mixed()) add(flat(replica.values(), plan.dtype, count));
}

void GatheredValues::publish(UpdateOutcome* outcome, Stream& stream) {
  const double begin = steady_seconds();
  for (Gathering& gathering : gatherings_) gathering.done = gathering.all->start(stream.record());
  stream.wait(spoiled_.start(*outcome, stream));
  for (const Gathering& gathering : gatherings_) stream.wait(gathering.done);
  spoiled_.set(outcome);
  exposed_seconds_ += steady_seconds() - begin;
}

std::vector<std::string> GatheredValues::report() const {
  std::vector<std::string> lines;
  for (const Gathering& gathering : gatherings_)
    for (auto& line : report_of(*gathering.all, "new parameters", gathering.bytes)) lines.push_back(std::move(line));
  return lines;
}

std::size_t GatheredValues::memory() const noexcept {
  std::size_t bytes = spoiled_.memory();
  for (const Gathering& gathering : gatherings_) bytes += gathering.all->memory();
  return bytes;
}

GatheredOneCopy::GatheredOneCopy(Communicator communicator, const Replica& replica)
    : node_(ranks_on_node(communicator)), gathered_bytes_(replica.plan().dense_bytes), spoiled_(communicator) {
  const std::size_t count = replica.plan().dense_elements();
  const auto counts = elements_by_node(communicator, count);
  const bool first = communicator.topology().rank_on_node == 0;
  Communicator firsts = communicator.split(first ? 0 : 1, communicator.rank());
  if (first && counts.size() > 1)
    gathering_ = firsts.plan(AllgatherSpec{floats_in(replica.values(), {0, count}), counts, "the new parameters"});
}

void GatheredOneCopy::publish(UpdateOutcome* outcome, Stream& stream) {
  const double begin = steady_seconds();
  const Event told = spoiled_.start(*outcome, stream);
  static_cast<void>(node_.meet());
  if (gathering_ != nullptr) gathering_->start(stream.record()).wait();
  stream.wait(told);
  static_cast<void>(node_.meet());
  spoiled_.set(outcome);
  exposed_seconds_ += steady_seconds() - begin;
}

std::vector<std::string> GatheredOneCopy::report() const {
  if (gathering_ == nullptr) return {};
  return report_of(*gathering_, "new parameters, between nodes", gathered_bytes_);
}

std::size_t GatheredOneCopy::memory() const noexcept {
  return spoiled_.memory() + (gathering_ != nullptr ? gathering_->memory() : 0);
}

}  // namespace ronda
