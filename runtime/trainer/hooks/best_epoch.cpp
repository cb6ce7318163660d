#include <ronda/collectives/phase.hpp>
#include <ronda/core/error.hpp>
#include <ronda/runtime/checkpoint/best_model.hpp>
#include <ronda/runtime/checkpoint/checkpoint_folder.hpp>
#include <ronda/runtime/checkpoint/restore.hpp>
#include <ronda/runtime/checkpoint/snapshot.hpp>
#include <ronda/runtime/io/safetensors.hpp>
#include <ronda/runtime/trainer/hooks/best_epoch.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace ronda {
namespace {

namespace fs = std::filesystem;

constexpr const char* best_epoch_name = "best_epoch";

/// Parameters and layers' states, but those that each rank has for itself.
std::vector<State> model_of(Strategy& strategy) {
  StateList list;
  strategy.state().visit_model(list);
  std::vector<State> states;
  std::ranges::copy_if(list.states(), std::back_inserter(states), [](const State& state) {
    return !is_counter(state) && (state.scope == Scope::replicated || state.scope == Scope::averaged);
  });
  return states;
}

/// On rank 0: removes files that no checkpoint goes back to, nor one that is being written.
void remove_older(const fs::path& folder, std::uint64_t newest) try {
  std::uint64_t oldest = newest;
  for (const auto& place : list_checkpoints(folder)) {
    const CheckpointManifest manifest = read_manifest(manifest_of(place.path));
    const auto found = manifest.hooks.find(best_epoch_name);
    if (found != manifest.hooks.end() && found->second.size() > 1)
      oldest = std::min(oldest, static_cast<std::uint64_t>(found->second[1]));
  }
  for (const fs::path& path : list_best_models(folder))
    if (step_of_best_model(path) < oldest) fs::remove(path);
} catch (const std::exception&) {  // what cannot be read or removed now is in nobody's way
}

/// Sets states of the host from a file. Throws InputError where it is not these states'.
void set_from(const fs::path& path, std::span<const State> states) {
  const std::vector<NamedTensor> tensors = read_best_model(path);
  for (const State& state : states) {
    const auto found = std::ranges::find(tensors, state.name, &NamedTensor::name);
    if (found == tensors.end() || found->shape != state.tensor.shape())
      throw InputError(path.string() + " has no " + state.name + " of shape " + state.tensor.shape().text());
    from_file(state, found->values);
  }
}

}  // namespace

void BestEpoch::on_start(TrainingRun& run) {
  model_.emplace(model_of(run.strategy()), run.strategy().device());
  go_on(run);
}

/// The copy that an earlier run has left, where its file is there.
void BestEpoch::go_on(TrainingRun& run) {
  const auto kept = run.kept_of(best_epoch_name);
  if (kept.size() < 6) return;
  const auto step = static_cast<std::uint64_t>(kept[1]);
  const Message problem = read(run, best_model_path(run.progress().resumed_from.parent_path(), step));
  if (!problem.empty())
    return run.sink().on_message(Severity::warning, "the best model so far, of step " + std::to_string(step) +
                                                        ", is lost, and later ones count alone: " + problem);
  epoch_ = static_cast<std::uint64_t>(kept[0]);
  step_ = step;
  result_ = {kept[2], kept[3]};
  for (const EpochReport& report : run.progress().history)
    if (report.epoch == epoch_) result_.metrics = report.validated ? report.validation_metrics : report.test_metrics;
  loss_.go_on_from(kept.subspan(4));
  if (!run.options().checkpoint_dir.empty()) write(run);  // another folder, perhaps
}

/// To the copy; the model itself is as before. Returns what is wrong with the file; the same on all ranks.
Message BestEpoch::read(TrainingRun& run, const fs::path& path) {
  const Communicator& communicator = run.world().communicator();
  StateCopy now({model_->states().begin(), model_->states().end()}, run.strategy().device());
  StatesOnHost here(model_->states(), run.strategy().device());
  now.take();
  TrainingState& training = run.strategy().state();
  training.meet();
  Message problem;
  agree(communicator, [&] {
    here.fetch();
    here.wait();
    if (communicator.rank() != 0) return;
    const Phase phase(communicator, Activity::reading, reading_limit(path.parent_path()));
    try {
      set_from(path, here.states());
    } catch (const InputError& error) {
      problem = error.message();
    }
  });
  problem = Message::unpacked(communicator.broadcast_text(problem.packed()));
  if (problem.empty()) {
    Communicator all = communicator;
    for (const State& state : here.states()) broadcast_state(state, all);
    here.send();
    model_->take();
  }
  training.meet();
  now.give_back();
  here.wait();
  training.meet();
  return problem;
}

void BestEpoch::after_epoch(TrainingRun& run, const EpochReport& report) {
  if (!loss_.hear(run.tested_loss(report), run.options().least_improvement)) return;
  run.strategy().state().with_average([&] { model_->take(); });
  epoch_ = report.epoch;
  step_ = run.step();
  result_ = report.validated ? Evaluation{report.validation_loss, report.validation_metric, report.validation_metrics}
                             : Evaluation{report.test_loss, report.test_metric, report.test_metrics};
  if (!run.options().checkpoint_dir.empty()) write(run);
}

void BestEpoch::write(TrainingRun& run) const {
  const Communicator& communicator = run.world().communicator();
  const fs::path& folder = run.options().checkpoint_dir;
  agree(communicator, [&] {
    if (communicator.rank() != 0) return;
    const Phase phase(communicator, Activity::writing);
    StatesOnHost here(model_->copies(), run.strategy().device());
    here.fetch();
    here.wait();
    std::map<std::string, std::string> metadata{{"format", "pt"}, {"step", std::to_string(step_)}};
    metadata.insert(run.options().metadata.begin(), run.options().metadata.end());
    std::vector<NamedTensor> tensors;
    for (const State& state : here.states()) tensors.push_back({state.name, state.tensor.shape(), to_file(state)});
    try {
      write_best_model(best_model_path(folder, step_), std::move(tensors), metadata);
      remove_older(folder, std::min(step_, std::ranges::min(named_)));
    } catch (const Error& error) {  // as with a checkpoint that cannot be written
      run.sink().on_message(
          Severity::warning,
          "the best model so far is not kept beside the checkpoints, and a run that goes on will not know it: " +
              error.message());
    }
  });
}

void BestEpoch::before_save(TrainingRun&, CheckpointManifest& manifest) {
  if (epoch_ == 0) return;
  std::vector<double>& kept = manifest.hooks[best_epoch_name];
  kept = {static_cast<double>(epoch_), static_cast<double>(step_), result_.loss, result_.metric};
  for (const double number : loss_.kept()) kept.push_back(number);
  named_ = {named_[1], step_};
}

void BestEpoch::on_end(TrainingRun& run) {
  if (run.left() || epoch_ == 0) return;
  if (epoch_ != run.progress().history.size()) {
    run.strategy().state().meet();
    model_->give_back();
    run.strategy().state().meet();
    run.strategy().state().set_updates(run.strategy().updates());  // what layers read of parameters is rounded anew
    run.strategy().state().restart_average();
    run.note_states_were_set();
    run.sink().on_note("the model is that of epoch " + std::to_string(epoch_) + ", which had the least " +
                       run.tested_with() + " loss");
  }
  if (!run.validates()) run.set_result(result_);
}

void BestEpoch::summarize(Summary& summary) const {
  summary.monitor.best_epoch = epoch_;
  summary.monitor.best_loss = result_.loss;
}

}  // namespace ronda
