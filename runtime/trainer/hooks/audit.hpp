#pragma once
#include <cstdint>
#include <optional>

#include <ronda/runtime/checkpoint/replica_audit.hpp>
#include <ronda/runtime/trainer/training_run.hpp>

namespace ronda {

/// Compares the replicas each `audit_every` steps and before each save, and stops or repairs a training whose replicas
/// differ: see ReplicaAudit.
class Audit final : public Hook {
 public:
  void on_start(TrainingRun& run) override;
  [[nodiscard]] bool settles_after(std::uint64_t step) const override { return step % every_ == 0; }
  void after_step(TrainingRun& run, const StepReport& report) override;
  void after_epoch(TrainingRun& run, const EpochReport& report) override;
  void before_save(TrainingRun& run, CheckpointManifest& manifest) override;
  void summarize(Summary& summary) const override;

 private:
  void compare(TrainingRun& run);
  void mend(TrainingRun& run);

  std::uint64_t every_ = 1;
  std::optional<ReplicaAudit> replicas_;
  TrainingPosition kept_;  ///< of the copy that `replicas_` keeps
  std::uint64_t states_were_set_ = 0;
  std::uint64_t audits_ = 0, divergences_ = 0;
  double seconds_ = 0;
};

}  // namespace ronda
