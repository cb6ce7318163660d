#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ronda/collectives/world.hpp>
#include <ronda/runtime/io/console.hpp>
#include <ronda/runtime/trainer/stop_signals.hpp>
#include <ronda/runtime/trainer/training_options.hpp>

#include "option_names.hpp"

namespace CLI {
class App;  // <CLI/CLI.hpp>, for those who add options
}

namespace ronda::apps {

/// What a training application does unless told otherwise.
struct Defaults {
  std::uint64_t epochs = 1;
  double learning_rate = 0.1;  ///< with the default optimizer
  std::string optimizer = "nesterov";
  std::string schedule = "cosine";
};

/// The options that every training application shares, for the command line and for `--config` files: those of
/// TrainingOptions (see Option), of the world, and of the console. Values in a file are given as on the command line,
/// without the dashes: `batch-size = 64`.
class CommandLine {
 public:
  CommandLine(std::string application, const std::string& description, Defaults defaults);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  /// For options of one application's own.
  [[nodiscard]] CLI::App& app() noexcept { return *app_; }
  /// `check` is called at the end of parse, when all options are set; may throw InputError.
  void check_by(std::function<void()> check) { checks_.push_back(std::move(check)); }

  /// Adds a warning about the data, which rank 0 prints before the training; empty: none.
  void warn(std::string remark) {
    if (!remark.empty()) warnings_.push_back(std::move(remark));
  }
  [[nodiscard]] const std::vector<std::string>& warnings() const noexcept { return warnings_; }

  /// Messages show `flag`, such as `whole-gradients`, for one value of a field of the library.
  void name_flag(std::string field, std::string value, std::string flag) {
    names_.add_flag(std::move(field), std::move(value), std::move(flag));
  }

  /// Fills everything below. False where --help or --version was asked for and answered. Throws
  /// InputError for what cannot be understood.
  bool parse(int argc, char** argv);

  /// What the library calls an option, and what this command line does.
  [[nodiscard]] const OptionNames& names() const noexcept { return names_; }

  TrainingOptions training;
  WorldOptions world;
  bool quiet = false, verbose = false;
  LogInterval log_every = {};
  /// Set by parse: the signals that request an early end of the training.
  std::optional<StopSignals> stop_signals;

 private:
  void add_training_options();
  void add_world_options();
  void add_output();
  void name_own_options();

  std::unique_ptr<CLI::App> app_;
  EveryStrategy strategies_;  ///< options of all strategies, as given; `training` gets those of the chosen one
  Defaults defaults_;
  OptionNames names_;
  std::size_t shared_options_ = 0;  ///< those of all applications; behind them come one application's own
  std::vector<std::function<void()>> checks_;
  std::vector<std::string> warnings_;
  std::string progress_ = "auto";
};

}  // namespace ronda::apps
