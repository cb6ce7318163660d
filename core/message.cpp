#include <ronda/core/error.hpp>
#include <ronda/core/message.hpp>

#include <charconv>

namespace ronda {
namespace {

// A packed message is a sequence of strings, each with its kind and its length: `t5:take f8:strategyv7:sharded`.
constexpr char text_kind = 't', field_kind = 'f', value_kind = 'v';

void pack(std::string& packed, char kind, const std::string& text) {
  packed += kind;
  packed += std::to_string(text.size());
  packed += ':';
  packed += text;
}

/// Removes the first string from `packed`.
std::pair<char, std::string> unpack_first(std::string_view& packed) {
  std::size_t size = 0;
  const char* const end = packed.data() + packed.size();
  const auto [colon, error] = std::from_chars(packed.data() + 1, end, size);
  if (error != std::errc{} || colon == end || *colon != ':' || size > static_cast<std::size_t>(end - colon) - 1)
    throw LogicError("this string is no packed message");
  std::pair<char, std::string> first{packed.front(), std::string(colon + 1, size)};
  packed.remove_prefix(static_cast<std::size_t>(colon + 1 - packed.data()) + size);
  return first;
}

}  // namespace

std::string Setting::text() const { return "." + field + (value ? " = " + *value : ""); }

std::string Message::text() const { return text_with(nullptr); }

std::string Message::text_with(const SettingNames& names) const {
  std::string text;
  for (const Part& part : parts_) {
    if (const auto* plain = std::get_if<std::string>(&part)) {
      text += *plain;
      continue;
    }
    const auto& setting = std::get<Setting>(part);
    const std::string name = names ? names(setting) : std::string();
    text += name.empty() ? setting.text() : name;
  }
  return text;
}

std::string Message::packed() const {
  std::string packed;
  for (const Part& part : parts_) {
    if (const auto* plain = std::get_if<std::string>(&part)) {
      pack(packed, text_kind, *plain);
      continue;
    }
    const auto& setting = std::get<Setting>(part);
    pack(packed, field_kind, setting.field);
    if (setting.value) pack(packed, value_kind, *setting.value);
  }
  return packed;
}

Message Message::unpacked(std::string_view packed) {
  Message message;
  while (!packed.empty()) {
    auto [kind, text] = unpack_first(packed);
    auto* const last = message.parts_.empty() ? nullptr : std::get_if<Setting>(&message.parts_.back());
    if (kind == text_kind)
      message += std::move(text);
    else if (kind == field_kind)
      message += Setting{std::move(text)};
    else if (kind == value_kind && last != nullptr && !last->value)
      last->value = std::move(text);
    else
      throw LogicError("this string is no packed message");
  }
  return message;
}

Message& Message::operator+=(const Message& more) {
  const std::vector<Part> added = more.parts_;  // `more` may be this message
  for (const Part& part : added) {
    const auto* const text = std::get_if<std::string>(&part);
    auto* const last = parts_.empty() ? nullptr : std::get_if<std::string>(&parts_.back());
    if (text != nullptr && last != nullptr)
      *last += *text;
    else
      parts_.push_back(part);
  }
  return *this;
}

}  // namespace ronda
