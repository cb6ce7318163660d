#pragma once
#include <algorithm>
#include <string>
#include <string_view>

#include <ronda/core/message.hpp>

namespace ronda {

/// The description of an option. Used by the command line, configuration files, --help, docs/options.md, the comparison
/// of ranks, checkpoints and the summary.
struct Option {
  std::string_view name;                 ///< `batch-size`: after two dashes, in files, in checkpoints
  std::string group = {};                ///< heading in --help; empty: --help omits the option
  std::string help = {};                 ///< a phrase
  std::string otherwise = {};            ///< the default in words; empty: the default's value
  std::string_view field = {};           ///< the struct's field; empty: the name, with underscores
  std::string_view owner = {};           ///< the struct: `LocalSgd`; empty: TrainingOptions
  std::string_view unset = "not given";  ///< text for a missing value
  bool common = false;                   ///< --help lists it, not only --help-all
  bool matters = false;                  ///< changes the results by more than rounding: checkpoints store the value
  bool alike = true;                     ///< the value is the same on all ranks
  bool is_size = false;                  ///< bytes: 64K, 4M, 2G
  bool positive = false;                 ///< above 0
  bool negated = false;                  ///< a flag whose name denies the field: --no-shuffle
  /// Why the option has no effect; follows "has no meaning": `for .optimizer.name = sgd: it is for adam`. Empty: the
  /// option has an effect.
  Message unread = {};

  /// `batch_size`: the field of a Setting in the library's messages.
  [[nodiscard]] std::string field_name() const {
    std::string text(field.empty() ? name : field);
    std::ranges::replace(text, '-', '_');
    return text;
  }
};

}  // namespace ronda
