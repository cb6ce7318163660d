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

/// Texts with a class each; as many texts as labels.
struct LabelledText {
  std::vector<std::string> texts;
  std::vector<std::int32_t> labels;  ///< from 0
  std::string file = {};             ///< where they are from, for messages
};

struct LabelledTextOptions {
  bool header = true;        ///< the first line names the columns
  std::int32_t classes = 0;  ///< labels are below it; 0: there may be any number of classes
  /// Called for each damaged line, which is left out; null: the first one is thrown.
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

/// Each line of a text without labels, plain or gzipped, without its end; empty lines too. Throws InputError if the
/// file has no lines, or one is not in the encoding.
[[nodiscard]] std::vector<std::string> read_text_lines(const std::filesystem::path& path,
                                                       TextEncoding encoding = TextEncoding::utf8);

/// Samples of which `input` is int32 (length), the text's first tokens, and Tokenizer::padding behind them, and
/// `target` is int32 scalar, the label. Throws InputError where there are no texts or `length` is not positive.
[[nodiscard]] MemoryDataset tokenized(const LabelledText& text, const Tokenizer& tokenizer, std::int64_t length);

}  // namespace ronda
