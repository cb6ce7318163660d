#pragma once
#include <concepts>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace ronda {

/// A field of an options struct, as a message names it: `.one_copy`, or with a value, `.strategy = sharded`.
struct Setting {
  std::string field;  ///< without the dot; of a struct within: `optimizer.name`
  std::optional<std::string> value = std::nullopt;

  /// As C++ names it.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] bool operator==(const Setting&) const = default;
};

/// The name of a setting in a program's own language: `--strategy sharded`; empty: as C++ names it.
using SettingNames = std::function<std::string(const Setting&)>;

/// The text of an error, a warning or a note. The fields that it names are parts of their own, so that a program can
/// show them by names of its own: `--strategy sharded`. Build it with `+`, from texts and `setting`.
class Message {
 public:
  using Part = std::variant<std::string, Setting>;

  Message() = default;
  Message(std::string text) {  // NOLINT(google-explicit-constructor): a text is a message
    if (!text.empty()) parts_.emplace_back(std::move(text));
  }
  Message(std::string_view text) : Message(std::string(text)) {}         // NOLINT(google-explicit-constructor)
  Message(const char* text) : Message(std::string(text)) {}              // NOLINT(google-explicit-constructor)
  Message(Setting setting) { parts_.emplace_back(std::move(setting)); }  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool empty() const noexcept { return parts_.empty(); }
  [[nodiscard]] const std::vector<Part>& parts() const noexcept { return parts_; }

  /// With the names of C++.
  [[nodiscard]] std::string text() const;
  /// @param names  null: as C++ names them
  [[nodiscard]] std::string text_with(const SettingNames& names) const;

  /// The parts as one string, which can travel to another rank.
  [[nodiscard]] std::string packed() const;
  /// The message of `packed`. Throws LogicError for any other string.
  [[nodiscard]] static Message unpacked(std::string_view packed);

  Message& operator+=(const Message& more);
  [[nodiscard]] friend Message operator+(Message left, const Message& right) { return std::move(left += right); }
  [[nodiscard]] bool operator==(const Message&) const = default;

 private:
  std::vector<Part> parts_;  ///< no text is empty, and no two texts are neighbours
};

/// `.one_copy`
[[nodiscard]] inline Message setting(std::string_view field) { return Setting{std::string(field)}; }
/// `.strategy = sharded`
[[nodiscard]] inline Message setting(std::string_view field, std::string_view value) {
  return Setting{std::string(field), std::string(value)};
}
/// `.batch_size = 64`, `.sparse = false`
template <std::integral Value>
[[nodiscard]] Message setting(std::string_view field, Value value) {
  if constexpr (std::same_as<Value, bool>)
    return setting(field, std::string_view(value ? "true" : "false"));
  else
    return setting(field, std::string_view(std::to_string(value)));
}

}  // namespace ronda
