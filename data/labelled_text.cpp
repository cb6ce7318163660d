#include <ronda/core/error.hpp>
#include <ronda/data/detail/gzip_file.hpp>
#include <ronda/data/detail/lines.hpp>
#include <ronda/data/labelled_text.hpp>

#include <charconv>
#include <span>
#include <utility>

namespace ronda {
namespace {

/// None where the field is no whole number that int32 holds.
std::optional<std::int32_t> number_of(std::string_view field) {
  std::int32_t number = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), number);
  if (error != std::errc() || end != field.data() + field.size()) return std::nullopt;
  return number;
}

std::int32_t label_of(std::string_view field, std::int32_t classes, const LineReader& reader) {
  const std::optional<std::int32_t> label = number_of(field);
  if (label && *label >= 0 && (classes == 0 || *label < classes)) return *label;
  throw reader.error("expected a label, a whole number from 0 " +
                     (classes == 0 ? std::string("on") : "to " + std::to_string(classes - 1)) + ", found '" +
                     shown(field) + "'");
}

void check_header(std::string_view line, const LineReader& reader) {
  if (number_of(line.substr(0, line.find('\t'))))
    throw reader.error("expected names of columns, found '" + shown(line) +
                       "'; read a file without them with .header = false");
}

void add_line(std::string_view line, std::int32_t classes, const LineReader& reader, LabelledText& result) {
  const std::size_t tab = line.find('\t');
  if (tab == std::string_view::npos)
    throw reader.error("expected a label, a tab and a text, found '" + shown(line) + "' without a tab");
  reader.require_utf8(line);
  const std::string_view text = line.substr(tab + 1);
  if (text.find('\t') != std::string_view::npos)
    throw reader.error("expected a label, a tab and a text, found a second tab; put blanks in the place of tabs");
  result.labels.push_back(label_of(line.substr(0, tab), classes, reader));
  result.texts.emplace_back(text);
}

}  // namespace

LabelledText read_labelled_text(const std::filesystem::path& path, const LabelledTextOptions& options) {
  const std::string content = whole_text(path);
  LabelledText result;
  result.file = path.string();
  LineReader reader(content, path);
  if (options.header)
    if (const auto first = reader.next()) check_header(*first, reader);
  while (const auto line = reader.next()) try {
      if (!line->empty()) add_line(*line, options.classes, reader, result);
    } catch (const InputError& damage) {
      if (!options.on_damaged) throw;
      options.on_damaged(damage);
    }
  if (result.texts.empty()) throw InputError(path.string() + " has no texts");
  return result;
}

std::vector<std::string> read_text_lines(const std::filesystem::path& path, TextEncoding encoding) {
  const std::string content = whole_text(path);
  std::vector<std::string> lines;
  LineReader reader(content, path);
  while (const auto line = reader.next()) {
    if (encoding == TextEncoding::utf8) reader.require_utf8(*line);
    lines.emplace_back(*line);
  }
  if (lines.empty()) throw InputError(path.string() + " has no texts");
  return lines;
}

MemoryDataset tokenized(const LabelledText& text, const Tokenizer& tokenizer, std::int64_t length) {
  if (length < 1) throw InputError("tokenized: a length is at least 1, found " + std::to_string(length));
  const auto places = static_cast<std::size_t>(length);
  std::vector<std::int32_t> tokens(text.texts.size() * places, Tokenizer::padding);
  for (std::size_t i = 0; i < text.texts.size(); ++i)
    tokenizer.write(text.texts[i], std::span(tokens).subspan(i * places, places));
  std::vector<Column> columns;
  columns.push_back({"input", Shape{length}, std::move(tokens)});
  columns.push_back({"target", Shape{}, text.labels});
  MemoryDataset samples(std::move(columns));
  samples.set_origin(text.file);
  return samples;
}

}  // namespace ronda
