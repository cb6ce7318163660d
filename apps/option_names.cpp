#include "option_names.hpp"

#include <ronda/core/error.hpp>

#include <algorithm>

namespace ronda::apps {
namespace {

bool is_name(char character) { return (character >= 'a' && character <= 'z') || character == '_'; }
bool is_name_or_digit(char character) { return is_name(character) || (character >= '0' && character <= '9'); }

/// What `text` begins with that may be one, also a field of a field.
std::string_view longest_field(std::string_view text) {
  return text.substr(
      0, std::ranges::find_if_not(text, [](char c) { return is_name_or_digit(c) || c == '.'; }) - text.begin());
}

/// Whether a field may be named behind `text`: not within a file's name or a number.
bool may_begin_after(std::string_view text) { return text.empty() || text.back() == ' ' || text.back() == '('; }

/// First place of `value` in `text` that is not the field of that name (` = ` follows it); npos: none.
std::size_t first_value(std::string_view text, std::string_view value) {
  std::size_t found = text.find(value);
  while (found != std::string_view::npos && text.substr(found + value.size()).starts_with(" = "))
    found = text.find(value, found + 1);
  return found;
}

template <class E>
[[noreturn]] void throw_renamed(const OptionNames& names, const E& error) {
  E renamed(names.on_command_line(error.what()));
  if (error.agreed()) renamed.set_agreed();
  throw renamed;
}

}  // namespace

std::string OptionNames::field_of(std::string_view name) const {
  const auto found = std::ranges::find_if(names_, [&](const auto& entry) { return entry.second == name; });
  return found == names_.end() ? "" : found->first;
}

void OptionNames::keep_value(const std::string& value) {
  if (std::string renamed; rename(value, renamed), renamed != value) values_.insert(value);
}

std::string OptionNames::on_command_line(std::string_view text) const {
  std::string result;
  for (;;) {
    std::size_t begin = std::string_view::npos, length = 0;
    for (const std::string& value : values_)
      if (const std::size_t found = first_value(text, value);
          found < begin || (found == begin && value.size() > length))
        begin = found, length = value.size();
    rename(text.substr(0, begin), result);
    if (begin == std::string_view::npos) return result;
    result += text.substr(begin, length);
    text.remove_prefix(begin + length);
  }
}

/// Appends `text` to `result`, with the names of the command line.
void OptionNames::rename(std::string_view text, std::string& result) const {
  while (!text.empty()) {
    const std::size_t point = text.find('.');
    result += text.substr(0, point);
    if (point == std::string_view::npos) break;
    text.remove_prefix(point + 1);
    const auto flag = std::ranges::find_if(flags_, [&](const auto& entry) { return text.starts_with(entry.first); });
    if (flag != flags_.end() && may_begin_after(result)) {
      result += "--" + flag->second;
      text.remove_prefix(flag->first.size());
      continue;
    }
    std::string_view field = longest_field(text);
    while (!names_.contains(field) && field.find('.') != std::string_view::npos)
      field = field.substr(0, field.rfind('.'));
    const auto found = names_.find(field);
    if (found == names_.end() || !may_begin_after(result)) {
      result += '.';
      continue;
    }
    result += "--" + found->second;
    text.remove_prefix(field.size());
    if (text.starts_with(" = ")) text.remove_prefix(2);
  }
}

void OptionNames::translate_errors(FunctionRef<void()> work) const {
  try {
    work();
  } catch (const InputError& error) {
    throw_renamed(*this, error);
  } catch (const ResourceError& error) {
    throw_renamed(*this, error);
  } catch (const CommunicationError& error) {
    throw_renamed(*this, error);
  } catch (const DeviceError& error) {
    throw_renamed(*this, error);
  } catch (const LogicError& error) {
    throw_renamed(*this, error);
  } catch (const Error& error) {
    Error renamed(on_command_line(error.what()), error.status());
    if (error.agreed()) renamed.set_agreed();
    throw renamed;
  }
}

}  // namespace ronda::apps
