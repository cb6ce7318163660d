#pragma once
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <ronda/core/metric.hpp>

namespace ronda {

/// What a run came to, for programs: `--summary-json`. The names are the file's; NaN says "not measured" and is written
/// as null.
struct Summary {
  static constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

  struct Epoch {
    std::uint64_t epoch = 0;  ///< from 1
    double train_loss = unknown, train_metric = unknown, test_loss = unknown, test_metric = unknown;
    double validation_loss = unknown, validation_metric = unknown;
    double seconds = unknown;
    std::vector<MetricValue> test_metrics = {}, validation_metrics = {};  ///< numbers of these alone are written
  };

  std::string application, version;
  Metric metric;           ///< what `train_metric` and the others are; their keys are `train_accuracy`, …
  bool validates = false;  ///< epochs were tested with validation data
  int world_size = 1, hosts = 1;
  std::string device, dtype;
  std::uint64_t global_batch_size = 0, epochs = 0, steps = 0, samples = 0, parameters = 0;
  std::uint64_t gradient_bytes = 0;     ///< of memory, of this rank
  double train_seconds = unknown;       ///< training steps only
  double samples_per_second = unknown;  ///< over all ranks; see StepStatistics
  struct {
    double median = unknown, p99 = unknown;
  } step_microseconds;
  double final_train_loss = unknown;  ///< of the last step, mean over the global batch
  double test_loss = unknown, test_metric = unknown;
  std::vector<MetricValue> test_metrics;  ///< `test_metrics`: {name: a number, or an array of a matrix's rows}
  std::string parameter_hash;
  struct {
    std::string algorithm;
    std::string compression = "none";  ///< of what is sent: bf16, fp16, int8, int4, 2bit
    std::uint64_t bytes_per_step = 0, buckets = 0;
    double exposed_seconds = unknown;
  } allreduce;
  struct {
    std::uint64_t count = 0;          ///< 0: each step is one
    std::uint64_t sent_bytes = 0;     ///< by this rank, in messages
    double waited_seconds = unknown;  ///< by this rank
    double total_seconds = unknown;   ///< that they were under way, waited for or not
  } synchronisations;
  /// Of a pipeline; empty: the model is not cut.
  struct Stage {
    std::string begins;                        ///< the operation that it begins with
    std::uint64_t parameters = 0, memory = 0;  ///< elements; bytes a rank
    double computing_seconds = unknown, waiting_seconds = unknown;
    double bubble = unknown, predicted_bubble = unknown;  ///< shares of the time in which a rank waits
  };
  std::vector<Stage> stages;
  struct {
    std::uint64_t parts = 0;           ///< ranks that have one model together; 0: no operation is split
    std::vector<std::string> layers;   ///< `dense1=columns`
    std::uint64_t parameters = 0;      ///< of the part that has most
    std::uint64_t bytes_per_step = 0;  ///< that the parts add up or gather
    double waiting_seconds = unknown;  ///< that this rank spent in that
  } split;
  struct {
    int count = 0;                              ///< 0: ranks are all alike
    std::uint64_t pushed_bytes = 0;             ///< of gradients, by this rank to servers
    std::uint64_t pulled_bytes = 0;             ///< of parameters, by this rank from servers
    std::uint64_t dropped = 0;                  ///< gradients of all workers that came too late for a step
    std::vector<std::uint64_t> staleness = {};  ///< element s: gradients that were s updates old; empty: not measured
  } servers;
  struct {
    std::uint64_t written = 0;       ///< in this run
    std::uint64_t resumed_step = 0;  ///< of the checkpoint that this run went on from; 0: from the start
    double exposed_seconds = 0;      ///< that training waited for saving
  } checkpoint;
  struct {
    std::uint64_t audits = 0, divergences = 0;  ///< comparisons of the replicas, and those that found them different
    double audit_seconds = 0;
    std::uint64_t nonfinite_steps = 0, rollbacks = 0;
    std::uint64_t overflow_steps = 0;  ///< not applied, since a gradient was beyond float16
  } guard;
  double startup_seconds = unknown;  ///< from the start of the process to the first step
  std::string plan_hash;
  std::vector<Epoch> epoch_history;
  std::vector<std::pair<std::string, std::string>> options;  ///< all of them, in words
  struct {
    std::uint64_t weights = 0;  ///< of the parameters that are pruned; 0: nothing is
    std::uint64_t zeros = 0;    ///< of these
  } pruning;
  /// Of ranks that share a step by what was measured.
  struct {
    std::uint64_t deals = 0;                   ///< how often they were changed
    std::vector<std::uint64_t> micro_batches;  ///< of a step in the end, by rank; empty: equal shares
  } shares;
  /// Of early stopping and the best epoch.
  struct {
    std::uint64_t best_epoch = 0;  ///< the one with the least monitored loss; 0: nothing is monitored
    double best_loss = unknown;    ///< of its validation or test
    bool early = false;            ///< it ended because the loss did not improve
    double rate_factor = 1;        ///< that the learning rate was reduced by in the end
  } monitor;
};

/// Whole or not at all. Throws InputError where the file cannot be created, ResourceError where it cannot be written.
void write_summary(const std::filesystem::path& path, const Summary& summary);

}  // namespace ronda
