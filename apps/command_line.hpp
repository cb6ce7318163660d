#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include <ronda/collectives/world.hpp>
#include <ronda/runtime/trainer/stop_signals.hpp>
#include <ronda/runtime/trainer/training_options.hpp>

namespace ronda::apps {

/// What a training application does unless told otherwise.
struct Defaults {
  std::uint64_t epochs = 1;
  double learning_rate = 0.1;  ///< with the default optimizer, Nesterov momentum
};

/// The options that every training application shares; one definition, for the command line and for `--config` files.
/// Values in a file are given as on the command line, without the dashes: `batch-size = 64`.
class CommandLine {
 public:
  CommandLine(std::string application, const std::string& description, Defaults defaults);

  /// For options of one application's own.
  [[nodiscard]] CLI::App& app() noexcept { return app_; }

  /// Fills everything below. False where --help or --version was asked for and answered. Throws
  /// InputError for what cannot be understood.
  bool parse(int argc, char** argv);

  TrainingOptions training;
  WorldOptions world;
  std::filesystem::path data;
  double label_smoothing = 0;
  bool quiet = false, verbose = false;
  /// From the end of parse on, where the training is saved: signals that ask for its end are heard of from the start.
  std::optional<StopSignals> stop_signals;

 private:
  void add_data_and_length();
  void add_learning();
  void add_placement();
  void add_resilience();
  void add_files_and_output();
  void refuse_what_optimizer_lacks() const;
  void apply_names();

  CLI::App app_;
  Defaults defaults_;
  std::string initializer_ = "he_normal", dtype_ = "float32", device_ = "auto", allreduce_ = "auto", progress_ = "auto",
              compression_ = "none";
  std::string checkpoint_every_, time_limit_;
  std::string on_divergence_ = "stop", on_nonfinite_;
  std::vector<std::string> faults_;
  double weight_decay_ = 0, warmup_epochs_ = 0;
  bool no_shuffle_ = false;
};

/// The MNIST files beside the binary: `share/mnist` or `share/ronda/mnist` of a folder above it; empty where there are
/// none.
[[nodiscard]] std::filesystem::path find_mnist();

}  // namespace ronda::apps
