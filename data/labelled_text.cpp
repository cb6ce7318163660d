#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>
#include <ronda/data/detail/gzip_file.hpp>
#include <ronda/data/detail/lines.hpp>
#include <ronda/data/labelled_text.hpp>

#include <algorithm>
#include <charconv>
#include <span>
#include <utility>

namespace ronda {
namespace {

bool is_letter(char c) {
  const char small = lower_case(c);
  return (small >= 'a' && small <= 'z') || (c >= '0' && c <= '9') || static_cast<unsigned char>(c) >= 0x80;
}

/// The next word of `rest`, which then begins behind it; empty where there is none.
std::string_view next_word(std::string_view& rest) {
  const auto begin = std::ranges::find_if(rest, is_letter);
  auto end = begin;
  while (end != rest.end() && is_letter(*end)) {
    end = std::find_if_not(end, rest.end(), is_letter);
    if (end != rest.end() && *end == '\'' && end + 1 != rest.end() && is_letter(end[1])) ++end;
  }
  const std::string_view word(begin, end);
  rest = std::string_view(end, rest.end());
  return word;
}

std::uint64_t fnv_1a(std::string_view word) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : word) hash = (hash ^ static_cast<unsigned char>(lower_case(c))) * 0x100000001b3;
  return hash;
}

/// Writes `token_of` each word, as far as there is room.
template <class TokenOf>
std::size_t write_words(std::string_view text, std::span<std::int32_t> places, TokenOf&& token_of) {
  std::size_t count = 0;
  for (std::string_view rest = text; count < places.size(); ++count) {
    const std::string_view word = next_word(rest);
    if (word.empty()) break;
    places[count] = token_of(word);
  }
  return count;
}

}  // namespace

HashedWords::HashedWords(std::int32_t size) : size_(size) {
  if (size < 2)
    throw InputError("hashed words need at least 2 tokens, one of them for padding, found " + std::to_string(size));
}

std::size_t HashedWords::write(std::string_view text, std::span<std::int32_t> places) const {
  const auto buckets = static_cast<std::uint64_t>(size_ - 1);
  return write_words(text, places,
                     [&](std::string_view word) { return static_cast<std::int32_t>(1 + fnv_1a(word) % buckets); });
}

std::size_t TextBytes::write(std::string_view text, std::span<std::int32_t> places) const {
  const std::size_t count = std::min(text.size(), places.size());
  std::transform(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(count), places.begin(),
                 [](char c) { return 1 + static_cast<std::int32_t>(static_cast<unsigned char>(c)); });
  return count;
}

Vocabulary::Vocabulary(std::vector<std::string> words) : words_(std::move(words)) {
  for (std::string& word : words_) {
    word = lower_case(std::move(word));
    const auto token = static_cast<std::int32_t>(tokens_.size()) + 2;
    if (word.empty()) throw InputError("word " + std::to_string(token - 1) + " of a vocabulary is empty");
    if (!tokens_.emplace(word, token).second)
      throw InputError("the word '" + printable(word) + "' comes twice in a vocabulary");
  }
}

Vocabulary Vocabulary::of(std::span<const std::string> texts, std::size_t most) {
  std::unordered_map<std::string, std::size_t> counts;
  for (std::string_view rest : texts)
    for (std::string_view word = next_word(rest); !word.empty(); word = next_word(rest))
      ++counts[lower_case(std::string(word))];
  std::vector<std::pair<std::string, std::size_t>> by_count(counts.begin(), counts.end());
  std::ranges::sort(by_count, [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  std::vector<std::string> words;
  for (std::size_t i = 0; i < std::min(most, by_count.size()); ++i) words.push_back(by_count[i].first);
  return Vocabulary(std::move(words));
}

std::size_t Vocabulary::write(std::string_view text, std::span<std::int32_t> places) const {
  return write_words(text, places, [&](std::string_view word) {
    const auto found = tokens_.find(lower_case(std::string(word)));
    return found == tokens_.end() ? unknown : found->second;
  });
}

Vocabulary read_vocabulary(const std::filesystem::path& path) {
  const std::string text = whole_text(path);
  std::vector<std::string> words;
  std::unordered_map<std::string, std::size_t> lines;
  for (LineReader reader(text, path); const auto line = reader.next();) {
    reader.require_utf8(*line);
    std::string word = lower_case(std::string(*line));
    if (word.empty()) throw reader.error("expected a word, found an empty line");
    const auto [earlier, is_new] = lines.emplace(word, reader.line());
    if (!is_new)
      throw reader.error("the word '" + shown(word) + "' is in line " + std::to_string(earlier->second) + " already");
    words.push_back(std::move(word));
  }
  if (words.empty()) throw InputError(path.string() + " has no words");
  return Vocabulary(std::move(words));
}

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
    throw reader.error("expected names of columns, found '" + shown(line) + "'; read a file without them with " +
                       setting("header", "false"));
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
