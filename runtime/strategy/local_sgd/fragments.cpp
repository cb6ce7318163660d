#include <ronda/runtime/strategy/local_sgd/fragments.hpp>

#include <algorithm>
#include <utility>

namespace ronda {
namespace {

/// The number of the fragment, of so many, in which the middle of the slot lies.
std::size_t fragment_of(const GradientSlot& slot, std::size_t bytes, std::size_t fragments) {
  return std::min((slot.offset + slot.bytes / 2) * fragments / bytes, fragments - 1);
}

}  // namespace

Fragments::Fragments(const Communicator& communicator, const std::vector<GradientSlot>& slots, const Buffer& changes,
                     const LocalSgd& local, FusionOptions options)
    : changes_(changes), period_(local.synchronise_every), delay_(local.fragment_delay) {
  const std::size_t bytes = slots.back().offset + slots.back().bytes;
  agree(communicator, [&] { started_ = Buffer::host(changes.bytes()); });
  std::size_t before = local.fragments;
  for (const GradientSlot& slot : slots) {
    const std::size_t number = fragment_of(slot, bytes, local.fragments);
    if (std::exchange(before, number) != number)
      fragments_.push_back({.slots = {}, .elements = {slot.offset / sizeof(float), 0}});
    fragments_.back().slots.push_back(slot);
    fragments_.back().elements.end = (slot.offset + slot.bytes) / sizeof(float);
  }
  options.late = false;
  for (std::size_t i = 0; i < fragments_.size(); ++i) {
    options.label = "fragment " + std::to_string(i) + " change";
    fragments_[i].place = (i + 1) * period_ / fragments_.size();
    fragments_[i].exchange = std::make_unique<FusionBuffer>(communicator, fragments_[i].slots, changes, options);
  }
}

void Fragments::start_due(std::uint64_t step, OwnSteps& own, const OuterStep& outer, const float* values,
                          Stream& stream) {
  for (Fragment& fragment : fragments_) {
    if (step % period_ != fragment.place % period_) continue;
    const Range part = fragment.elements;
    fragment.own = std::exchange(own, {});
    fragment.exchange->control() = fragment.own.told();
    outer.measure(values, changes(), part, stream.threads());
    std::copy_n(values + part.begin, part.size(), started() + part.begin);
    fragment.exchange->begin();
    for (const GradientSlot& slot : fragment.slots) fragment.exchange->mark_ready(slot.id, stream);
    fragment.started = step;
    fragment.under_way = true;
  }
}

bool Fragments::finish_due(std::uint64_t step, OwnSteps& told, StepControl& all, OuterStep& outer, float* values,
                           Stream& stream) {
  bool any = false;
  for (Fragment& fragment : fragments_) {
    if (!fragment.under_way || fragment.started + delay_ > step) continue;
    finish(fragment, told, all, outer, values, stream);
    any = true;
  }
  return any;
}

bool Fragments::finish_all(OwnSteps& told, StepControl& all, OuterStep& outer, float* values, Stream& stream) {
  bool any = false;
  for (;;) {  // the oldest first, as they were told
    Fragment* oldest = nullptr;
    for (Fragment& fragment : fragments_)
      if (fragment.under_way && (oldest == nullptr || fragment.started < oldest->started)) oldest = &fragment;
    if (oldest == nullptr) return any;
    finish(*oldest, told, all, outer, values, stream);
    any = true;
  }
}

void Fragments::finish(Fragment& fragment, OwnSteps& told, StepControl& all, OuterStep& outer, float* values,
                       Stream& stream) {
  fragment.exchange->wait(stream);
  fragment.under_way = false;
  ++finished_;
  told.add(fragment.own);
  add(all, fragment.exchange->control());
  outer.apply_late(changes(), started(), values, fragment.elements, stream.threads());
}

void Fragments::drop_all(Stream& stream) {
  for (Fragment& fragment : fragments_)
    if (std::exchange(fragment.under_way, false)) fragment.exchange->wait(stream);
}

void Fragments::poll() {
  for (const Fragment& fragment : fragments_)
    if (fragment.under_way) fragment.exchange->poll();
}

void Fragments::visit(StateVisitor& visitor) {
  for (const Fragment& fragment : fragments_) fragment.exchange->visit(visitor);
}

void Fragments::add_costs(SynchronisationCosts& costs) const {
  costs.count += finished_;
  for (const Fragment& fragment : fragments_) {
    costs.sent_bytes += fragment.exchange->sent_bytes();
    const double waited = fragment.exchange->exposed_seconds();
    costs.waited_seconds += waited;
    costs.total_seconds += std::max(waited, fragment.exchange->longest_seconds());
  }
}

std::vector<std::string> Fragments::describe() const {
  std::vector<std::string> lines;
  for (const Fragment& fragment : fragments_)
    for (auto& line : fragment.exchange->describe()) lines.push_back(std::move(line));
  lines.push_back(std::to_string(fragments_.size()) + " fragments, applied after " + std::to_string(delay_) + " steps");
  return lines;
}

double Fragments::exposed_seconds() const noexcept {
  double seconds = 0;
  for (const Fragment& fragment : fragments_) seconds += fragment.exchange->exposed_seconds();
  return seconds;
}

std::size_t Fragments::memory() const noexcept {
  std::size_t bytes = started_.bytes();
  for (const Fragment& fragment : fragments_) bytes += fragment.exchange->memory();
  return bytes;
}

}  // namespace ronda
