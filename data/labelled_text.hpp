#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/data/memory_dataset.hpp>
#include <ronda/data/tokenizer.hpp>

namespace ronda {

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
