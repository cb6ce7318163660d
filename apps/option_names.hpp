#pragma once
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <ronda/core/event_sink.hpp>
#include <ronda/core/function_ref.hpp>

namespace ronda::apps {

/// The library names options by their fields, `.batch_size = 64` (see Error); the people in front of a command line
/// know them as `--batch-size 64`.
class OptionNames {
 public:
  /// @param field  as Option::field_name
  /// @param name   without dashes
  void add(std::string field, std::string name) { names_.insert_or_assign(std::move(field), std::move(name)); }

  /// A flag that stands for one value of a field.
  /// @param value  `sparse = false`
  void add_flag(std::string value, std::string name) { flags_.insert_or_assign(std::move(value), std::move(name)); }

  /// A value of an option: messages show it unchanged, even if it looks like a field.
  void keep_value(const std::string& value);

  /// The field behind a name of the command line; empty: the library has none.
  [[nodiscard]] std::string field_of(std::string_view name) const;
  /// `text` with the names of the command line.
  [[nodiscard]] std::string on_command_line(std::string_view text) const;

  /// Calls `work`; an error that it throws names options as the command line does.
  void translate_errors(FunctionRef<void()> work) const;

 private:
  void rename(std::string_view text, std::string& result) const;

  std::map<std::string, std::string, std::less<>> names_;
  std::set<std::string> values_;              ///< options' values that `rename` must not change
  std::map<std::string, std::string> flags_;  ///< by `field = value`
};

/// Passes everything on, with the command line's names in texts.
class NamingSink final : public EventSink {
 public:
  /// Both outlive it.
  NamingSink(const OptionNames& names, EventSink& sink) : names_(names), sink_(sink) {}

  void on_note(std::string_view text) override { sink_.on_note(names_.on_command_line(text)); }
  void on_detail(std::string_view text) override { sink_.on_detail(names_.on_command_line(text)); }
  void on_warning(std::string_view text) override { sink_.on_warning(names_.on_command_line(text)); }
  [[nodiscard]] bool wants_details() const override { return sink_.wants_details(); }
  void on_start(const StartReport& report) override { sink_.on_start(report); }
  void on_step(const StepReport& report) override { sink_.on_step(report); }
  void on_checkpoint(std::uint64_t step) override { sink_.on_checkpoint(step); }
  void on_epoch(const EpochReport& report) override { sink_.on_epoch(report); }

 private:
  const OptionNames& names_;
  EventSink& sink_;
};

}  // namespace ronda::apps
