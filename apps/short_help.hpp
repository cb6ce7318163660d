#pragma once
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

namespace ronda::apps {

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

}  // namespace ronda::apps
