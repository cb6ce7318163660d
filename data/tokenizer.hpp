#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ronda {

/// Makes tokens of a text: whole numbers from 1 to size()-1, which an embedding has rows for. 0 is for padding.
class Tokenizer {
 public:
  static constexpr std::int32_t padding = 0;

  virtual ~Tokenizer() = default;
  /// Rows that an embedding needs, that of padding included.
  [[nodiscard]] virtual std::int32_t size() const = 0;
  /// Writes the text's first tokens, at most `places.size()`. Returns how many.
  virtual std::size_t write(std::string_view text, std::span<std::int32_t> places) const = 0;
};

/// A token a word, without a vocabulary: 1 + hash(word) mod (size - 1), where the hash is the 64-bit FNV-1a of the
/// word's bytes in lower case (Fowler, Noll and Vo). Words that meet in a token cannot be told apart (Weinberger et
/// al., "Feature hashing for large scale multitask learning", ICML 2009).
///
/// A word, here and in Vocabulary, is a run of letters, digits and apostrophes that begins and ends with no apostrophe;
/// each character beyond ASCII counts as a letter, and only ASCII's become lower case. All else separates words.
class HashedWords final : public Tokenizer {
 public:
  /// Throws InputError for a size below 2.
  explicit HashedWords(std::int32_t size);
  [[nodiscard]] std::int32_t size() const override { return size_; }
  std::size_t write(std::string_view text, std::span<std::int32_t> places) const override;

 private:
  std::int32_t size_;
};

/// A token a byte of the text: 1 + byte, as UTF-8 has them.
class TextBytes final : public Tokenizer {
 public:
  [[nodiscard]] std::int32_t size() const override { return 257; }
  std::size_t write(std::string_view text, std::span<std::int32_t> places) const override;
};

/// A token a word of a list, in lower case: 2 for the first word, and so on. Words that are not in it are token 1. What
/// the list has that no word can be (see HashedWords) is never met.
class Vocabulary final : public Tokenizer {
 public:
  static constexpr std::int32_t unknown = 1;

  /// Throws InputError for a word that is empty or comes twice.
  explicit Vocabulary(std::vector<std::string> words);
  /// The most frequent words of the texts, at most so many, the most frequent first; of equally frequent ones those
  /// that the alphabet has first.
  [[nodiscard]] static Vocabulary of(std::span<const std::string> texts, std::size_t most);

  [[nodiscard]] const std::vector<std::string>& words() const noexcept { return words_; }
  [[nodiscard]] std::int32_t size() const override { return static_cast<std::int32_t>(words_.size()) + 2; }
  std::size_t write(std::string_view text, std::span<std::int32_t> places) const override;

 private:
  std::vector<std::string> words_;
  std::unordered_map<std::string, std::int32_t> tokens_;
};

/// Reads a vocabulary: a word a line, plain or gzipped. Throws InputError that names file and line where a word is
/// empty or comes twice, upper and lower case being the same, and the file where it has no words.
[[nodiscard]] Vocabulary read_vocabulary(const std::filesystem::path& path);

}  // namespace ronda
