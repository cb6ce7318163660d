#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/data/memory_dataset.hpp>

namespace ronda {

/// Converts a text to tokens: integers from 1 to size()-1, row numbers of an embedding. 0 is padding.
class Tokenizer {
 public:
  static constexpr std::int32_t padding = 0;

  virtual ~Tokenizer() = default;
  /// Number of rows of the embedding, including padding.
  [[nodiscard]] virtual std::int32_t size() const = 0;
  /// Writes the text's first tokens, at most `places.size()`. Returns their number.
  virtual std::size_t write(std::string_view text, std::span<std::int32_t> places) const = 0;
};

/// One token per word, without a vocabulary: 1 + hash(word) mod (size - 1), where the hash is the 64-bit FNV-1a of the
/// word's bytes in lower case (Fowler, Noll and Vo). Words with the same token cannot be distinguished (Weinberger et
/// al., "Feature hashing for large scale multitask learning", ICML 2009).
///
/// A word, here and in Vocabulary, is a sequence of letters, digits and apostrophes that neither begins nor ends with
/// an apostrophe. All characters beyond ASCII count as letters; only ASCII letters are converted to lower case. All
/// other characters separate words.
class HashedWords final : public Tokenizer {
 public:
  /// Throws InputError for a size below 2.
  explicit HashedWords(std::int32_t size);
  [[nodiscard]] std::int32_t size() const override { return size_; }
  std::size_t write(std::string_view text, std::span<std::int32_t> places) const override;

 private:
  std::int32_t size_;
};

/// One token per byte of the UTF-8 text: 1 + byte.
class TextBytes final : public Tokenizer {
 public:
  [[nodiscard]] std::int32_t size() const override { return 257; }
  std::size_t write(std::string_view text, std::span<std::int32_t> places) const override;
};

/// One token per word of a list, in lower case: 2 for the first word of the list, and so on. Words that are not in the
/// list have token 1. List entries that are not words (see HashedWords) never occur.
class Vocabulary final : public Tokenizer {
 public:
  static constexpr std::int32_t unknown = 1;

  /// Throws InputError for a word that is empty or repeated.
  explicit Vocabulary(std::vector<std::string> words);
  /// The `most` most frequent words of the texts, the most frequent first; equally frequent words in alphabetical
  /// order.
  [[nodiscard]] static Vocabulary of(std::span<const std::string> texts, std::size_t most);

  [[nodiscard]] const std::vector<std::string>& words() const noexcept { return words_; }
  [[nodiscard]] std::int32_t size() const override { return static_cast<std::int32_t>(words_.size()) + 2; }
  std::size_t write(std::string_view text, std::span<std::int32_t> places) const override;

 private:
  std::vector<std::string> words_;
  std::unordered_map<std::string, std::int32_t> tokens_;
};

/// Reads a vocabulary: one word per line, plain or gzipped. Throws InputError that names file and line if a word is
/// empty or repeated (ignoring case), and the file if it has no words.
[[nodiscard]] Vocabulary read_vocabulary(const std::filesystem::path& path);

/// Texts with class labels; as many texts as labels.
struct LabelledText {
  std::vector<std::string> texts;
  std::vector<std::int32_t> labels;  ///< from 0
  std::string file = {};             ///< file name, for messages
};

struct LabelledTextOptions {
  bool header = true;        ///< the first line names the columns
  std::int32_t classes = 0;  ///< labels must be below this; 0: no limit
  /// Called for each damaged line, which is skipped; null: the first one is thrown.
  std::function<void(const InputError&)> on_damaged = {};
};

/// Reads lines `label<TAB>text` in UTF-8, plain or gzipped. Lines end with LF or CRLF, or all with CR; a byte order
/// mark and empty lines are skipped. The text may be empty, and has no tabs.
///
/// Throws InputError that names file and line, for
/// - a label that is not a whole number from 0, or not below `classes`;
/// - a line without a tab, with a second one, or not in UTF-8;
/// - a first line without names, if a header is expected;
/// - a file without texts.
[[nodiscard]] LabelledText read_labelled_text(const std::filesystem::path& path,
                                              const LabelledTextOptions& options = {});

enum class TextEncoding : std::uint8_t {
  utf8,
  bytes  ///< any bytes
};

/// The lines of a text without labels, plain or gzipped, without line ends; includes empty lines. Throws InputError if
/// the file has no lines, or a line is not valid in the encoding.
[[nodiscard]] std::vector<std::string> read_text_lines(const std::filesystem::path& path,
                                                       TextEncoding encoding = TextEncoding::utf8);

/// Samples with `input`, int32 (length): the text's first tokens, filled up with Tokenizer::padding; and `target`,
/// int32 scalar: the label. Throws InputError if there are no texts or `length` is not positive.
[[nodiscard]] MemoryDataset tokenized(const LabelledText& text, const Tokenizer& tokenizer, std::int64_t length);

}  // namespace ronda
