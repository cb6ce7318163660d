#pragma once
#include <cstdint>
#include <functional>

#include <ronda/core/event_sink.hpp>
#include <ronda/core/step_control.hpp>
#include <ronda/data/batch.hpp>
#include <ronda/runtime/strategy/evaluation.hpp>

namespace ronda {

class TrainingRun;
struct CheckpointManifest;
struct Summary;

/// Watches a training, or reacts to it: saves it, compares replicas, stops it early. Trainer::add takes hooks of one's
/// own; the trainer's are in hooks/.
///
/// All ranks have the same hooks, and call them at the same places in the order in which they were added; so a hook may
/// call collectives. What a hook throws ends the training.
///
/// A hook does not hold up a GPU: when `after_step` is called, later steps may be under way already. A hook that reads
/// or changes what the device computes with (parameters, states) says so by `settles_after`; in other calls than
/// `before_step`, `before_batch` and `after_step` no step is under way.
class Hook {
 public:
  virtual ~Hook() = default;

  /// All is planned and, where the training goes on from a checkpoint, restored. Before the first step of a fit.
  virtual void on_start(TrainingRun&) {}
  /// Before a step begins. Flags that are raised here reach all ranks with that step's result: `stop`, and `save`
  /// where checkpoints are taken. The others are the trainer's own.
  virtual void before_step(TrainingRun&, StepFlags& /*flags*/) {}
  /// Before the step's last micro-batch is computed. Not in a step for which this rank computes nothing
  /// (Strategy::samples_for).
  virtual void before_batch(TrainingRun&, const Batch&) {}
  /// Whether no later step may begin before `step` is finished and its `after_step` called. The same on all ranks.
  /// @param step  from 1, over all epochs
  [[nodiscard]] virtual bool settles_after(std::uint64_t /*step*/) const { return false; }
  /// Whether the hook reads or changes parameters or states after `step`: where ranks make steps of their own, this one
  /// ends with equal replicas. The same on all ranks.
  [[nodiscard]] virtual bool needs_replicas_after(std::uint64_t /*step*/) const { return false; }
  /// TrainingRun::last_step has more about the step.
  virtual void after_step(TrainingRun&, const StepReport&) {}
  /// After each test: at the end of an epoch, where there is test data.
  virtual void after_test(TrainingRun&, const Evaluation&) {}
  /// After the epoch's test. What is asked for here (TrainingRun::stop) is agreed on before the next epoch.
  virtual void after_epoch(TrainingRun&, const EpochReport&) {}
  /// Steps were done once more, up to the last one, to repair a replica (TrainingRun::repeat_since): a hook does again
  /// what it did to the parameters after the last of them.
  virtual void after_repeat(TrainingRun&) {}
  /// The training is about to be saved: a hook adds to the manifest what it needs to go on (CheckpointManifest::hooks),
  /// and may throw where nothing should be saved.
  virtual void before_save(TrainingRun&, CheckpointManifest&) {}
  /// The last step is done, or the training was stopped or preempted (TrainingRun::left).
  virtual void on_end(TrainingRun&) {}
  /// Adds what the hook has counted. On all ranks; only rank 0's summary is written. Not collective.
  virtual void summarize(Summary&) const {}
};

/// The calls that most hooks are about, as functions: `trainer.add({.step = …})`. Empty ones are not called.
struct Callbacks {
  std::function<void(const StepReport&)> step = {};
  std::function<void(const EpochReport&)> epoch = {};
  std::function<void(const Evaluation&)> evaluation = {};
  /// No step begins before the one before it was seen: a GPU waits for the host, and ranks that make steps of their own
  /// synchronise after each.
  bool settles = false;
};

}  // namespace ronda
