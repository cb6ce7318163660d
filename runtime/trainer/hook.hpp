#pragma once
#include <cstdint>
#include <functional>

#include <ronda/core/event_sink.hpp>
#include <ronda/core/step_control.hpp>
#include <ronda/data/batch.hpp>
#include <ronda/runtime/strategy/step/evaluation.hpp>

namespace ronda {

class TrainingRun;
struct CheckpointManifest;
struct Summary;

/// Watches a training, or reacts to it: saves it, compares replicas, stops it early. Add custom hooks with
/// Trainer::add; the trainer's own are in hooks/.
///
/// All ranks have the same hooks, and call them at the same places in the order in which they were added; a hook may
/// therefore call collectives. An exception from a hook ends the training.
///
/// A hook does not block a GPU: when `after_step` is called, later steps may already be in flight. A hook that reads or
/// changes data that the device computes with (parameters, states) declares it with `settles_after`. In calls other
/// than `before_step`, `before_batch` and `after_step` no step is in flight.
class Hook {
 public:
  virtual ~Hook() = default;

  /// Called before the first step of a fit, after planning and, in a resumed training, after restoring.
  virtual void on_start(TrainingRun&) {}
  /// Called before a step begins. Flags that are raised here reach all ranks with that step's result: `stop`, and
  /// `save` if checkpoints are written. Other flags are reserved for the trainer.
  virtual void before_step(TrainingRun&, StepFlags& /*flags*/) {}
  /// Called before the step's last micro-batch is computed, except in a step for which this rank computes nothing
  /// (Strategy::samples_for).
  virtual void before_batch(TrainingRun&, const Batch&) {}
  /// True if no later step may begin until `step` is finished and its `after_step` was called. The same on all ranks.
  /// @param step  from 1, over all epochs
  [[nodiscard]] virtual bool settles_after(std::uint64_t /*step*/) const { return false; }
  /// True if the hook reads or changes parameters or states after `step`; if ranks do not take every step together,
  /// this one then ends with equal replicas. The same on all ranks.
  [[nodiscard]] virtual bool needs_replicas_after(std::uint64_t /*step*/) const { return false; }
  /// Called after each step; TrainingRun::last_step has more data about it.
  virtual void after_step(TrainingRun&, const StepReport&) {}
  /// Called after each test: at the end of an epoch, if there is test data.
  virtual void after_test(TrainingRun&, const Evaluation&) {}
  /// Called after the epoch's test. A request made here (TrainingRun::stop) is agreed on before the next epoch.
  virtual void after_epoch(TrainingRun&, const EpochReport&) {}
  /// Called after steps were computed again, up to the last one, to repair a replica (TrainingRun::repeat_since): the
  /// hook must repeat its changes to the parameters after the last of them.
  virtual void after_repeat(TrainingRun&) {}
  /// Called before the training is saved: the hook adds to the manifest what it needs to resume
  /// (CheckpointManifest::hooks), and may throw to prevent the save.
  virtual void before_save(TrainingRun&, CheckpointManifest&) {}
  /// Called after the last step, or after the training was stopped or preempted (TrainingRun::left).
  virtual void on_end(TrainingRun&) {}
  /// Adds the hook's counts to the summary. Called on all ranks; only rank 0's summary is written. Not collective.
  virtual void summarize(Summary&) const {}
};

/// The most used calls of a hook as functions: `trainer.add({.step = …})`. Empty ones are not called.
struct Callbacks {
  std::function<void(const StepReport&)> step = {};
  std::function<void(const EpochReport&)> epoch = {};
  std::function<void(const Evaluation&)> evaluation = {};
  /// No step begins before `step` was called for the previous one: a GPU waits for the host, and ranks that do not take
  /// every step together synchronise after each.
  bool settles = false;
};

}  // namespace ronda
