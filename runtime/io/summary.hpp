#pragma once
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <ronda/core/metric.hpp>

namespace ronda {

/// Results of a run, as `--summary-json` writes them. Members have the file's names; NaN means "not measured" and is
/// written as null.
struct Summary {
  static constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

  struct Epoch {
    std::uint64_t epoch = 0;  ///< from 1
    double train_loss = unknown, train_metric = unknown, test_loss = unknown, test_metric = unknown;
    double validation_loss = unknown, validation_metric = unknown;
    double seconds = unknown;
    std::vector<MetricValue> test_metrics = {}, validation_metrics = {};  ///< matrices are not written
  };

  std::string application, version;
  Metric metric;           ///< name of `train_metric`, `test_metric` …; as keys of the file: `train_accuracy`, …
  bool validates = false;  ///< epochs were tested with validation data
  int world_size = 1, hosts = 1;
  std::string device, dtype;
  std::uint64_t global_batch_size = 0, epochs = 0, steps = 0, samples = 0, parameters = 0;
  std::uint64_t gradient_bytes = 0;     ///< memory of the gradients on this rank
  double train_seconds = unknown;       ///< in training steps
  double samples_per_second = unknown;  ///< over all ranks; see StepStatistics
  struct {
    double median = unknown, p99 = unknown;
  } step_microseconds;
  double final_train_loss = unknown;  ///< loss of the last step, mean over the global batch
  double test_loss = unknown, test_metric = unknown;
  std::vector<MetricValue> test_metrics;  ///< `test_metrics`: {name: a number, or an array of a matrix's rows}
  std::string parameter_hash;
  struct {
    std::string algorithm;
    std::string compression = "none";  ///< compression of the messages: none, bf16, fp16, int8, int4, 2bit
    std::uint64_t bytes_per_step = 0, buckets = 0;
    double exposed_seconds = unknown;
  } allreduce;
  struct {
    std::uint64_t count = 0;          ///< 0: every step synchronises
    std::uint64_t sent_bytes = 0;     ///< message bytes that this rank sent
    double waited_seconds = unknown;  ///< time that this rank waited
    double total_seconds = unknown;   ///< time in flight, whether a thread waited or not
  } synchronisations;
  /// A stage of a pipeline. `stages` is empty if the model is not cut.
  struct Stage {
    std::string begins;                        ///< name of its first operation
    std::uint64_t parameters = 0, memory = 0;  ///< elements; bytes per rank
    double computing_seconds = unknown, waiting_seconds = unknown;
    double bubble = unknown, predicted_bubble = unknown;  ///< share of the time in which a rank waits
  };
  std::vector<Stage> stages;
  struct {
    std::uint64_t parts = 0;           ///< ranks that share one model; 0: no operation is split
    std::vector<std::string> layers;   ///< `dense1=columns`
    std::uint64_t parameters = 0;      ///< elements of the largest part
    std::uint64_t bytes_per_step = 0;  ///< bytes that the parts sum or gather
    double waiting_seconds = unknown;  ///< time that this rank waited for these sums and gathers
  } split;
  struct {
    int count = 0;                              ///< number of parameter servers; 0: none
    std::uint64_t pushed_bytes = 0;             ///< gradient bytes that this rank sent to servers
    std::uint64_t pulled_bytes = 0;             ///< parameter bytes that this rank received from servers
    std::uint64_t dropped = 0;                  ///< gradients of all workers that arrived too late for their step
    std::vector<std::uint64_t> staleness = {};  ///< element s: gradients that were s updates old; empty: not measured
  } servers;
  struct {
    std::uint64_t written = 0;       ///< checkpoints that this run wrote
    std::uint64_t resumed_step = 0;  ///< step of the checkpoint that this run resumed from; 0: none
    double exposed_seconds = 0;      ///< time that training waited for saving
  } checkpoint;
  struct {
    std::uint64_t audits = 0, divergences = 0;  ///< comparisons of the replicas; those that found a difference
    double audit_seconds = 0;
    std::uint64_t nonfinite_steps = 0, rollbacks = 0;
    std::uint64_t overflow_steps = 0;  ///< steps not applied because a gradient overflowed float16
  } guard;
  double startup_seconds = unknown;  ///< from the start of the process to the first step
  std::string plan_hash;
  std::vector<Epoch> epoch_history;
  std::vector<std::pair<std::string, std::string>> options;  ///< all options, as text
  struct {
    std::uint64_t weights = 0;  ///< elements of the pruned parameters; 0: no pruning
    std::uint64_t zeros = 0;    ///< those of them that are zero
  } pruning;
  /// Division of a step among ranks by measured speed.
  struct {
    std::uint64_t deals = 0;                   ///< number of times that the shares changed
    std::vector<std::uint64_t> micro_batches;  ///< per step at the end of the run, by rank; empty: equal shares
  } shares;
  /// Early stopping and the best epoch.
  struct {
    std::uint64_t best_epoch = 0;  ///< epoch with the lowest monitored loss; 0: no loss is monitored
    double best_loss = unknown;    ///< validation or test loss of the best epoch
    bool early = false;            ///< training stopped early because the loss did not improve
    double rate_factor = 1;        ///< factor on the learning rate at the end of the run, after its reductions
  } monitor;
};

/// Writes the complete file or nothing. Throws InputError if it cannot be created, ResourceError if it cannot be
/// written.
void write_summary(const std::filesystem::path& path, const Summary& summary);

}  // namespace ronda
