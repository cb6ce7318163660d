#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>
#include <ronda/layers/split_choice.hpp>
#include <ronda/runtime/strategy/step/demands.hpp>
#include <ronda/runtime/strategy/split/split_model.hpp>

#include <algorithm>
#include <utility>

namespace ronda {

SplitModel::SplitModel(Graph whole, const Loss& loss, Primitives& primitives, Picker& picker, const Split& options,
                       std::size_t parts)
    : whole_(std::move(whole)) {
  choose(options, parts);
  split_ = split(whole_, choices_, parts);
  for (const Graph& graph : split_.parts) {
    programs_.emplace_back(std::in_place, graph, &loss, primitives, picker);
    plans_.emplace_back(*programs_.back(), primitives);
  }
  for (const ReplicaPlan& plan : plans_)
    if (!plan.tables().empty()) refuse_sparse_gradient(plan.tables().front().name, Split::name);
  require_alike();
}

/// On one rank there is nothing to split.
void SplitModel::choose(const Split& options, std::size_t parts) {
  choices_ = options.choices();
  if (!choices_.empty() || parts == 1) return;
  const std::vector<SplitCandidate> candidates = split_candidates(whole_, parts);
  for (const SplitCandidate& candidate : candidates) reasons_.push_back(candidate.text());
  choices_ = choices_that_pay(candidates);
  if (choices_.empty())
    throw InputError("no operation of this model saves more by being split over " +
                     counted(static_cast<std::int64_t>(parts), "rank") + " than that costs; name some (" +
                     setting("layers") + "), take larger batches, or " + setting("strategy", "mirrored"));
}

/// What is exchanged lies in the same order on all ranks.
void SplitModel::require_alike() const {
  for (const auto& program : programs_) {
    const auto mine = program->part_messages(), first = programs_.front()->part_messages();
    if (mine != first || program->output() != programs_.front()->output())
      throw LogicError("the parts of a split model tell each other different things");
  }
}

ModelPartition SplitModel::partition() const {
  ModelPartition partition{.parts = parts()};
  for (std::size_t i = 0; i < whole_.parameters.size(); ++i)
    partition.parameters.push_back({.described = whole_.parameters[i],
                                    .slices = split_.slices[i],
                                    .stored = {whole_.parameters[i].shape, DType::float32, {}}});
  for (const GraphState& state : whole_.states) partition.states.push_back({.described = state});
  return partition;
}

bool SplitModel::everywhere(std::string_view name) const {
  const auto found = std::ranges::find(whole_.parameters, name, &GraphParameter::name);
  return found != whole_.parameters.end() &&
         !split_.slices[static_cast<std::size_t>(found - whole_.parameters.begin())];
}

std::vector<std::string> SplitModel::lines() const {
  std::vector<std::string> lines{"split over " + counted(static_cast<std::int64_t>(parts()), "rank") + ": " +
                                 text_of(choices_)};
  for (std::size_t part = 0; part < parts(); ++part) {
    lines.push_back("part " + std::to_string(part));
    lines.insert(lines.end(), plans_[part].lines.begin(), plans_[part].lines.end());
  }
  return lines;
}

}  // namespace ronda
