#include "command_line.hpp"

#include <algorithm>
#include <concepts>
#include <cstdlib>
#include <set>
#include <type_traits>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include <ronda/core/data_files.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>
#include <ronda/runtime/trainer/option_visit.hpp>
#include <ronda/runtime/trainer/version.hpp>

#include "config_file.hpp"
#include "tool.hpp"

namespace ronda::apps {
namespace {

/// `--help` lists the options that most people need, `--help-all` lists all.
class ShortHelp final : public CLI::Formatter {
 public:
  /// @param long_only  names of options that `--help` leaves out, without dashes
  explicit ShortHelp(std::set<std::string> long_only) : long_only_(std::move(long_only)) {
    column_width(42);
    all_.column_width(42);
  }

  [[nodiscard]] std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    if (mode != CLI::AppFormatMode::Normal) return all_.make_help(app, std::move(name), mode);
    std::string text = CLI::Formatter::make_help(app, std::move(name), mode);
    for (std::size_t gap = 0; (gap = text.find("\n\n\n")) != std::string::npos;) text.erase(gap, 1);  // empty groups
    return text;
  }
  [[nodiscard]] std::string make_group(std::string group, bool positional,
                                       std::vector<const CLI::Option*> options) const override {
    std::erase_if(options, [this](const CLI::Option* option) {
      return !option->get_lnames().empty() && long_only_.contains(option->get_lnames().front());
    });
    return options.empty() ? "" : CLI::Formatter::make_group(std::move(group), positional, std::move(options));
  }
  [[nodiscard]] std::string make_footer(const CLI::App* /*app*/) const override {
    return std::to_string(long_only_.size()) + " more options: --help-all\n";
  }

 private:
  std::set<std::string> long_only_;
  CLI::Formatter all_;
};

/// Of a text that is known to be a number. Given as a check, which CLI11's own would begin to explain with digits.
std::string why_not_positive(const std::string& text) {
  return read_number(text.c_str(), nullptr) > 0 ? "" : text + " is not above 0";
}
std::string why_not_at_least_1(const std::string& text) {
  return read_number(text.c_str(), nullptr) > 0 ? "" : "it is at least 1, not " + text;
}

/// Adds options to a command line.
struct AddOption {
  CLI::App& app;
  const std::map<std::string_view, std::string>& otherwise;  ///< instead of Option::otherwise

  template <class T>
  void operator()(const Option& option, T& field) const {
    CLI::Option* added = nullptr;
    if constexpr (std::same_as<T, bool>) {
      added = option.negated ? app.add_flag_callback(
                                   "--no-" + std::string(option.name), [&field] { field = false; }, help(option))
                             : app.add_flag(flag(option), field, help(option));
    } else if constexpr (std::same_as<T, std::vector<Fault>>) {
      const auto take = [&field](const std::vector<std::string>& texts) {
        for (const auto& text : texts) field.push_back(parse_fault(text));
      };
      added = app.add_option_function<std::vector<std::string>>(flag(option), take, help(option))->delimiter(',');
    } else {
      added = app.add_option(flag(option), field, help(option));
      if constexpr (std::same_as<T, std::vector<std::string>>) added->delimiter(',')->default_str("");
      if (option.is_size) added->transform(CLI::AsSizeValue(false));
      if (option.positive) added->check(CLI::Validator(std::integral<T> ? why_not_at_least_1 : why_not_positive, ""));
    }
    finish(option, added);
  }

  template <class T, class Parse>
  void operator()(const Option& option, T& field, const Parse& parse) const {
    const auto take = [&field, parse](const std::string& text) { field = parse(text); };
    CLI::Option* const added = app.add_option_function<std::string>(flag(option), take, help(option));
    if constexpr (requires { name_of(field); }) added->default_str(std::string(name_of(field)));
    finish(option, added);
  }

  /// Given once for each entry, which may have commas in it.
  template <class T, class Parse>
  void operator()(const Option& option, std::vector<T>& field, const Parse& parse) const {
    const auto take = [&field, parse](const std::vector<std::string>& texts) {
      for (const auto& text : texts) field.push_back(parse(text));
    };
    finish(
        option,
        app.add_option_function<std::vector<std::string>>(flag(option), take, help(option))->allow_extra_args(false));
  }

 private:
  [[nodiscard]] static std::string flag(const Option& option) { return "--" + std::string(option.name); }
  [[nodiscard]] std::string text_otherwise(const Option& option) const {
    const auto found = otherwise.find(option.name);
    return found == otherwise.end() ? option.otherwise : found->second;
  }
  [[nodiscard]] std::string help(const Option& option) const {
    const std::string text = text_otherwise(option);
    return option.help + (text.empty() ? "" : " [" + text + "]");
  }
  void finish(const Option& option, CLI::Option* added) const {
    added->group(option.group);
    if (!text_otherwise(option).empty()) added->default_str("");
  }
};

}  // namespace

CommandLine::CommandLine(std::string application, const std::string& description, Defaults defaults)
    : app_(std::make_unique<CLI::App>(description, application)), defaults_(std::move(defaults)) {
  training.application = std::move(application);
  training.optimizer.name = defaults_.optimizer;
  training.schedule = defaults_.schedule;
  app_->option_defaults()->always_capture_default();
  app_->allow_config_extras(CLI::config_extras_mode::error);
  app_->set_version_flag("--version", training.application + " (Ronda) " + version(), "The version")->group("Output");
  app_->set_help_flag("-h,--help", "The most used options")->group("Output");
  app_->set_help_all_flag("--help-all", "All options")->group("Output");
  add_training_options();
  add_world_options();
  add_output();
  shared_options_ = app_->get_options().size();
}

CommandLine::~CommandLine() = default;

void CommandLine::add_training_options() {
  TextWriter rate;
  rate << defaults_.learning_rate << " with " << defaults_.optimizer << ", otherwise the --optimizer's";
  const std::map<std::string_view, std::string> otherwise{
      {"epochs", std::to_string(defaults_.epochs) + ", or as --steps needs"}, {"learning-rate", rate.str()}};
  visit(training, strategies_, AddOption{*app_, otherwise});
  std::set<std::string> long_only{"communication-progress", "communication-timeout", "trace"};
  visit(training, strategies_, [&](const Option& option, auto&...) {
    if (!option.common && !option.group.empty())
      long_only.insert((option.negated ? "no-" : "") + std::string(option.name));
    names_.add(option.field_name(), (option.negated ? "no-" : "") + std::string(option.name));
  });
  app_->formatter(std::make_shared<ShortHelp>(std::move(long_only)));
}

void CommandLine::add_world_options() {
  const char* const group = "Where and how";
  app_->add_option("--communication-progress,--progress", progress_,
                   "Where messages make progress: auto, inline, thread")
      ->group(group);
  app_->add_option("--communication-timeout", world.communication_timeout,
                   "Seconds to wait for a rank before the job ends; 0: no limit")
      ->check(CLI::Range(0.0, 1e6))
      ->group(group);
  app_->add_option("--trace", world.trace, "Folder for each rank's last collectives, which ronda_trace reads")
      ->default_str("")
      ->group("Files");
  names_.add("communication_timeout", "communication-timeout");
  names_.add("trace", "trace");
}

void CommandLine::add_output() {
  app_->config_formatter(std::make_shared<ConfigFile>(*app_));
  app_->set_config("--config", "", "Read options from a TOML file")->default_str("")->group("Files");
  auto* quiet_flag = app_->add_flag("--quiet", quiet, "Print only warnings and errors");
  quiet_flag->group("Output");
  app_->add_option_function<std::string>(
          "--log-every", [this](const std::string& text) { log_every = parse_log_interval(text); },
          "Steps, or seconds as 30s, between progress lines; 0: none")
      ->default_str("30s")
      ->group("Output");
  names_.add("log_every", "log-every");
  app_->add_flag("--verbose", verbose, "Print the plan and where the time goes")->group("Output")->excludes(quiet_flag);
}

/// An application's own options are called as the library calls the fields that they set.
void CommandLine::name_own_options() {
  const std::vector<CLI::Option*> options = app_->get_options();
  for (std::size_t i = shared_options_; i < options.size(); ++i)
    for (const std::string& name : options[i]->get_lnames()) {
      std::string field = name;
      std::ranges::replace(field, '-', '_');
      names_.add(field, name);
    }
}

bool CommandLine::parse(int argc, char** argv) {
  name_own_options();
  if (!apps::parse(*app_, argc, argv)) return false;
  if (app_->count("--epochs") == 0 && app_->count("--steps") == 0) training.epochs = defaults_.epochs;
  refuse_unread(training, strategies_,
                [&](std::string_view name) { return app_->count("--" + std::string(name)) > 0; });
  strategies_.fill(training.strategy);
  if (app_->count("--learning-rate") == 0 && training.optimizer.name == defaults_.optimizer)
    training.learning_rate = defaults_.learning_rate;
  world.progress = parse_progress(progress_);
  check(training);
  if (const CLI::Option* config = app_->get_config_ptr(); config->count() > 0)
    note_data_file(config->as<std::string>());
  for (const auto& check_more : checks_) check_more();
  stop_signals.emplace(training.checkpoint_dir.empty() ? StopSignals::Taken::warnings : StopSignals::Taken::all);
  return true;
}

}  // namespace ronda::apps
