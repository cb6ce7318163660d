#pragma once
#include <algorithm>
#include <string>
#include <string_view>

namespace ronda {

/// What is said of an option. The command line, configuration files, --help, docs/options.md, the comparison of ranks,
/// checkpoints and the summary read it.
struct Option {
  std::string_view name;        ///< `batch-size`: behind two dashes, in files, in checkpoints
  std::string group = {};       ///< heading of --help; empty: --help leaves the option out
  std::string help = {};        ///< a phrase
  std::string otherwise = {};   ///< what holds where the option is not given, in words; empty: the default's value
  std::string_view field = {};  ///< of the struct; empty: the name, with underscores
  std::string_view owner = {};  ///< that struct: `LocalSgd`; empty: TrainingOptions
  std::string_view unset = "not given";  ///< the value in words where there is none
  bool common = false;                   ///< --help lists it, not only --help-all
  bool matters = false;   ///< a training's numbers depend on it, apart from rounding: checkpoints keep the value
  bool alike = true;      ///< the value is the same on all ranks
  bool is_size = false;   ///< bytes: 64K, 4M, 2G
  bool positive = false;  ///< above 0
  bool negated = false;   ///< a flag whose name denies the field: --no-shuffle
  /// Why the option has no effect; follows "has no meaning": `for .optimizer.name = sgd: it is for adam`. Empty: the
  /// option has an effect.
  std::string unread = {};

  /// `batch_size`: the library's errors name the field so, behind a point.
  [[nodiscard]] std::string field_name() const {
    std::string text(field.empty() ? name : field);
    std::ranges::replace(text, '-', '_');
    return text;
  }
};

}  // namespace ronda
