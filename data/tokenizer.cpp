#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>
#include <ronda/data/detail/gzip_file.hpp>
#include <ronda/data/detail/lines.hpp>
#include <ronda/data/tokenizer.hpp>

#include <algorithm>
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

}  // namespace ronda
