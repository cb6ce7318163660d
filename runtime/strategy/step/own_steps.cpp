#include <ronda/runtime/strategy/step/own_steps.hpp>

#include <algorithm>

namespace ronda {
namespace {

// Places in StepControl::reserved, for counts of ranks.
constexpr std::size_t nonfinite_place = 0, spoiled_place = 1;

}  // namespace

void OwnSteps::count(const StepControl& step, const UpdateOutcome& outcome, std::uint64_t number) noexcept {
  StepFlags& flags = sums.flags;
  flags = {.stop = std::max(flags.stop, step.flags.stop),
           .leave = std::max(flags.leave, step.flags.leave),
           .save = std::max(flags.save, step.flags.save),
           .written = step.flags.written,  // these two are raised until all have heard of them
           .unwritten = step.flags.unwritten};
  if (outcome.finite != 0) {
    sums.loss += step.loss;
    sums.weight += step.weight;
    sums.metric += step.metric;
  }
  const bool bad = outcome.finite == 0 || outcome.spoiled != 0;
  if (bad && bad_steps++ == 0) first_bad = number;
  nonfinite = nonfinite || outcome.finite == 0;
  spoiled = spoiled || outcome.spoiled != 0;
}

void OwnSteps::add(const OwnSteps& later) noexcept {
  ronda::add(sums, later.sums);
  nonfinite = nonfinite || later.nonfinite;
  spoiled = spoiled || later.spoiled;
  if (bad_steps == 0) first_bad = later.first_bad;
  bad_steps += later.bad_steps;
}

StepControl OwnSteps::told() const noexcept {
  StepControl told = sums;
  told.reserved[nonfinite_place] = nonfinite ? 1 : 0;
  told.reserved[spoiled_place] = spoiled ? 1 : 0;
  return told;
}

bool tells_nonfinite(const StepControl& all) noexcept { return all.reserved[nonfinite_place] != 0; }
bool tells_spoiled(const StepControl& all) noexcept { return all.reserved[spoiled_place] != 0; }

void forget_writing(StepControl& all) noexcept { all.flags.written = all.flags.unwritten = 0; }

}  // namespace ronda
