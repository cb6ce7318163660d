// Texts as tokens: labelled sentences, and windows of a file for language models.
#include <array>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/data/dataset_part.hpp>
#include <ronda/data/labelled_text.hpp>
#include <ronda/data/text_windows.hpp>

#include "data/files.hpp"
#include "support/catch.hpp"
#include "support/message.hpp"
#include "support/temporary_folder.hpp"

using namespace ronda;
using namespace ronda::test;

namespace {

using Tokens = std::vector<std::int32_t>;

Tokens tokens_of(const Tokenizer& tokenizer, std::string_view text, std::size_t most = 100) {
  Tokens tokens(most, -1);
  const std::size_t count = tokenizer.write(text, tokens);
  for (std::size_t i = count; i < most; ++i) REQUIRE(tokens[i] == -1);  // what it does not write it leaves
  tokens.resize(count);
  return tokens;
}

std::vector<std::int32_t> row_of(const Dataset& data, const char* field, std::uint64_t sample) {
  Batch batch(data.fields(), 1);
  data.read({std::vector<std::uint64_t>{sample}}, batch);
  const auto values = batch.field(field).as<std::int32_t>();
  return {values.begin(), values.end()};
}

/// A file of the bytes 0 to 99.
std::filesystem::path counting_text(const TemporaryFolder& folder) {
  std::string content;
  for (int i = 0; i < 100; ++i) content.push_back(static_cast<char>(i));
  write_file(folder / "text", content);
  return folder / "text";
}

}  // namespace

TEST_CASE("hashed words are FNV-1a of the word in lower case, its remainder, and 1") {
  const HashedWords words(1 << 20);
  // FNV's published 64-bit hashes: "a" 0xaf63dc4c8601ec8c, "foobar" 0x85944171f73967e8
  const auto token = [](std::uint64_t hash) { return static_cast<std::int32_t>(1 + hash % ((1 << 20) - 1)); };
  CHECK(tokens_of(words, "a") == Tokens{token(0xaf63dc4c8601ec8c)});
  CHECK(tokens_of(words, "FooBar, a!") == Tokens{token(0x85944171f73967e8), token(0xaf63dc4c8601ec8c)});
  for (const std::int32_t size : {2, 3, 1000}) {
    const HashedWords few(size);
    CHECK(few.size() == size);
    for (const char* word : {"a", "film", "Don't", "1984", "caf\xc3\xa9"}) {
      const Tokens tokens = tokens_of(few, word);
      REQUIRE(tokens.size() == 1);
      CHECK(tokens[0] > Tokenizer::padding);
      CHECK(tokens[0] < size);
    }
  }
  REQUIRE_THROWS_AS(HashedWords(1), InputError);
  REQUIRE_THROWS_AS(HashedWords(-5), InputError);
}

TEST_CASE("a word is a run of letters, digits and apostrophes inside it") {
  const Vocabulary words({"conan", "don't", "rock", "n", "roll", "21st", "caf\xc3\xa9", "x"});
  CHECK(tokens_of(words, "''Conan'' DON'T") == Tokens{2, 3});
  CHECK(tokens_of(words, "rock'n'roll") == Tokens{Vocabulary::unknown});  // one word
  CHECK(tokens_of(words, "rock 'n' roll") == Tokens{4, 5, 6});
  CHECK(tokens_of(words, "the 21st-caf\xc3\xa9...x") == Tokens{Vocabulary::unknown, 7, 8, 9});
  CHECK(tokens_of(words, "") == Tokens{});
  CHECK(tokens_of(words, " '' -- ' ") == Tokens{});
  CHECK(tokens_of(words, "x'") == Tokens{9});
  CHECK(tokens_of(words, "x x x x", 2) == Tokens{9, 9});
  CHECK(tokens_of(words, "x", 0) == Tokens{});
  CHECK(words.size() == 10);
}

TEST_CASE("bytes are tokens from 1 to 256") {
  const TextBytes bytes;
  CHECK(tokens_of(bytes, std::string_view("a\0\xff", 3)) == Tokens{98, 1, 256});
  CHECK(tokens_of(bytes, "abc", 2) == Tokens{98, 99});
  CHECK(bytes.size() == 257);
}

TEST_CASE("a vocabulary is of the most frequent words, or of a file's lines") {
  const std::vector<std::string> texts{"b a", "B c", "d a"};
  CHECK(Vocabulary::of(texts, 3).words() == std::vector<std::string>{"a", "b", "c"});
  CHECK(Vocabulary::of(texts, 100).words().size() == 4);
  CHECK(Vocabulary::of({}, 3).size() == 2);
  REQUIRE_THROWS_AS(Vocabulary({"a", ""}), InputError);
  REQUIRE_THROWS_AS(Vocabulary({"a", "A"}), InputError);

  const TemporaryFolder folder;
  const auto path = folder / "words";
  write_file(path, "Film\r\ngood\n");
  CHECK(tokens_of(read_vocabulary(path), "good FILM bad") == Tokens{3, 2, 1});
  write_file(path, gzipped("film\ngood"));
  CHECK(read_vocabulary(path).words() == std::vector<std::string>{"film", "good"});
  const auto message = [&](const std::string& content) {
    write_file(path, content);
    return message_of<InputError>([&] { (void)read_vocabulary(path); });
  };
  require_mentions(message("a\nb\nA\n"), {"words, line 3", "'a'", "line 1"});
  require_mentions(message("a\n\nb\n"), {"words, line 2", "empty line"});
  require_mentions(message("a\ncaf\xe9\n"), {"words, line 2", "byte 4", "not UTF-8"});
  require_mentions(message(""), {"words", "no words"});
}

TEST_CASE("labelled lines are read, plain or gzipped, with all that lines may end with") {
  const TemporaryFolder folder;
  const auto path = folder / "text";
  const std::string content = "\xef\xbb\xbflabel\ttext\r\n1\tgood film\r\n\r\n0\t\n12\tno end";
  for (const std::string& file : {content, gzipped(content)}) {
    write_file(path, file);
    const LabelledText text = read_labelled_text(path);
    CHECK(text.texts == std::vector<std::string>{"good film", "", "no end"});
    CHECK(text.labels == std::vector<std::int32_t>{1, 0, 12});
  }
  write_file(path, "label\ttext\r1\tgood film\r0\tbad\r");
  CHECK(read_labelled_text(path).texts == std::vector<std::string>{"good film", "bad"});
  write_file(path, "1\tfirst\n");
  CHECK(read_labelled_text(path, {.header = false}).texts == std::vector<std::string>{"first"});
}

TEST_CASE("damaged lines are left out where somebody wants to be told of them") {
  const TemporaryFolder folder;
  write_file(folder / "text", "label\ttext\n0\tfine\nnone\n1\ta\tb\n2\tgood\n");
  std::vector<std::string> told;
  LabelledTextOptions options;
  options.on_damaged = [&](const InputError& error) { told.emplace_back(error.what()); };
  CHECK(read_labelled_text(folder / "text", options).labels == std::vector<std::int32_t>{0, 2});
  REQUIRE(told.size() == 2);
  require_mentions(told[0], {"line 3", "without a tab"});
  require_mentions(told[1], {"line 4", "second tab"});
}

TEST_CASE("the lines of a text without labels are texts, empty ones too") {
  const TemporaryFolder folder;
  write_file(folder / "text", gzipped("a\ttab\r\n\nno end"));
  CHECK(read_text_lines(folder / "text") == std::vector<std::string>{"a\ttab", "", "no end"});
  write_file(folder / "latin", "caf\xe9\n");
  CHECK(read_text_lines(folder / "latin", TextEncoding::bytes) == std::vector<std::string>{"caf\xe9"});
  require_mentions(message_of<InputError>([&] { static_cast<void>(read_text_lines(folder / "latin")); }),
                   {"latin, line 1", "byte 4", "not UTF-8", "iconv"});
  write_file(folder / "empty", "");
  require_mentions(message_of<InputError>([&] { static_cast<void>(read_text_lines(folder / "empty")); }),
                   {"empty", "no texts"});
}

TEST_CASE("a damaged line is refused with file, line, expectation and finding") {
  const TemporaryFolder folder;
  const auto path = folder / "text";
  const auto message = [&](const std::string& content, const LabelledTextOptions& options = {}) {
    write_file(path, content);
    return message_of<InputError>([&] { (void)read_labelled_text(path, options); });
  };
  require_mentions(message("label\ttext\n1\ta\n\nb\n"), {"text, line 4", "without a tab", "'b'"});
  require_mentions(message("label\ttext\n1\ta\tb\n"), {"text, line 2", "second tab"});
  require_mentions(message("label\ttext\n0\tcaf\xc3\xa9\n1\tcaf\xe9\n"),
                   {"text, line 3", "byte 6", "not UTF-8", "iconv"});
  for (const char* label : {"", " 1", "1.5", "-1", "99999999999", "one", "\x1b[31m"})
    require_mentions(message(std::string("label\ttext\n") + label + "\ta\n"),
                     {"text, line 2", "a whole number from 0 on"});
  CHECK(message("label\ttext\n\x1b[31m\ta\n").find('\x1b') == std::string::npos);
  require_mentions(message("label\ttext\n0\ta\n2\tb\n", {.classes = 2}), {"line 3", "from 0 to 1", "'2'"});
  require_mentions(message("1\ta\n0\tb\n"), {"text, line 1", "names of columns", ".header = false"});
  require_mentions(message("label\ttext\n"), {"no texts"});
  require_mentions(message(""), {"no texts"});
  const std::string cut = gzipped(std::string(1000, 'x'));
  require_mentions(message(cut.substr(0, cut.size() - 9)), {"text", "gzip stream"});
  require_mentions(message_of<InputError>([&] { (void)read_labelled_text(folder / "nowhere"); }), {"nowhere"});
  require_mentions(message_of<InputError>([&] { (void)read_labelled_text(folder.path()); }), {"directory"});
}

TEST_CASE("tokens are cut and padded to one length") {
  const MemoryDataset data = tokenized({{"a b c d", "", "c"}, {1, 0, 5}}, Vocabulary({"a", "b", "c", "d"}), 3);
  CHECK(data.size() == 3);
  CHECK(data.fields()[0].shape == Shape{3});
  CHECK(data.fields()[0].dtype == DType::int32);
  CHECK(row_of(data, "input", 0) == Tokens{2, 3, 4});
  CHECK(row_of(data, "input", 1) == Tokens{0, 0, 0});
  CHECK(row_of(data, "input", 2) == Tokens{4, 0, 0});
  CHECK(row_of(data, "target", 2) == Tokens{5});
  REQUIRE_THROWS_AS(tokenized({{"a"}, {0}}, TextBytes(), 0), InputError);
  REQUIRE_THROWS_AS(tokenized({}, TextBytes(), 3), InputError);
}

/// By naive Bayes: counts of tokens in the training texts alone, Laplace-smoothed.
TEST_CASE("the reviews of the repository are sentences whose tokens tell their labels") {
  constexpr std::int32_t size = 1 << 15, length = 64;
  const std::filesystem::path folder = RONDA_REVIEWS;
  const HashedWords words(size);
  const MemoryDataset train = tokenized(read_labelled_text(folder / "train.tsv.gz", {.classes = 2}), words, length),
                      test = tokenized(read_labelled_text(folder / "test.tsv.gz", {.classes = 2}), words, length);
  REQUIRE(train.size() == 11574);
  REQUIRE(test.size() == 1333);
  std::array<std::vector<double>, 2> counts{std::vector<double>(size, 1), std::vector<double>(size, 1)};
  std::array<double, 2> total{size, size};
  const auto for_each = [&](const MemoryDataset& data, const auto& visit) {
    const auto fields = data.stored();
    const auto* tokens = reinterpret_cast<const std::int32_t*>(fields[0].bytes.data());
    const auto* labels = reinterpret_cast<const std::int32_t*>(fields[1].bytes.data());
    for (std::size_t i = 0; i < data.size(); ++i) visit(std::span(tokens + i * length, length), labels[i]);
  };
  for_each(train, [&](std::span<const std::int32_t> tokens, std::int32_t label) {
    for (const std::int32_t token : tokens)
      if (token != Tokenizer::padding) ++counts[static_cast<std::size_t>(label)][static_cast<std::size_t>(token)];
    total[static_cast<std::size_t>(label)] += length;
  });
  int right = 0;
  for_each(test, [&](std::span<const std::int32_t> tokens, std::int32_t label) {
    double positive = 0;
    for (const std::int32_t token : tokens)
      if (token != Tokenizer::padding)
        positive += std::log(counts[1][static_cast<std::size_t>(token)] / total[1]) -
                    std::log(counts[0][static_cast<std::size_t>(token)] / total[0]);
    right += (positive > 0) == (label == 1) ? 1 : 0;
  });
  INFO(right);
  CHECK(right > 1333 * 3 / 4);  // guessing is right for half of them
}

TEST_CASE("windows of a text are its bytes, their targets the byte behind each") {
  const TemporaryFolder folder;
  const auto path = folder / "text";
  write_file(path, "the moon\xff");
  const TextWindows windows(path, 3);
  CHECK(windows.size() == 2);
  CHECK(row_of(windows, "input", 0) == Tokens{'t', 'h', 'e'});
  CHECK(row_of(windows, "target", 0) == Tokens{'h', 'e', ' '});
  CHECK(row_of(windows, "input", 1) == Tokens{' ', 'm', 'o'});
  CHECK(row_of(windows, "target", 1) == Tokens{'m', 'o', 'o'});
  CHECK(row_of(TextWindows(path, 8), "target", 0) == Tokens{'h', 'e', ' ', 'm', 'o', 'o', 'n', 255});
  CHECK(TextWindows(path, 1).size() == 8);
  for (std::size_t field : {0, 1}) {  // as a device keeps them: to the same numbers
    const StoredField stored = windows.stored()[field];
    REQUIRE(stored.bytes.size() == 6);
    const Tokens row = row_of(windows, field == 0 ? "input" : "target", 1);
    for (std::size_t i = 0; i < 3; ++i) CHECK(row[i] == std::to_integer<std::int32_t>(stored.bytes[3 + i]));
  }
  const std::uint64_t before = windows.fingerprint();
  write_file(folder / "longer", "the moon\xff!");  // no whole window more
  CHECK(TextWindows(folder / "longer", 3).fingerprint() != before);
  CHECK(TextWindows(path, 3).fingerprint() == before);
}

TEST_CASE("windows that vary begin elsewhere in each epoch, one behind the other; tests see them where they are") {
  const TemporaryFolder folder;
  const auto path = counting_text(folder);
  const TextWindows fixed(path, 8), windows(path, 8, {.vary = true});
  CHECK(windows.stored().empty());
  CHECK(windows.fingerprint() == fixed.fingerprint());
  const std::vector<std::uint64_t> all{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  std::set<std::int32_t> begins;
  for (const std::uint64_t epoch : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}) {
    Batch batch(windows.fields(), all.size());
    windows.read({all, epoch, 5}, batch);
    const auto input = batch.input().as<std::int32_t>(), target = batch.target().as<std::int32_t>();
    const std::int32_t second = input[8];
    if (epoch == 0) CHECK(second == 8);
    begins.insert(second);
    for (std::size_t i = 0; i < input.size(); ++i) {
      CHECK(input[i] == (i < 8 ? static_cast<std::int32_t>(i) : second + static_cast<std::int32_t>(i - 8)));
      CHECK(target[i] == input[i] + 1);
    }
  }
  CHECK(*begins.begin() > 0);
  CHECK(*begins.rbegin() <= 8);
  CHECK(begins.size() > 3);
}

TEST_CASE("windows that vary do not reach into windows that a part leaves out") {
  const TemporaryFolder folder;
  const auto path = counting_text(folder);
  const TextWindows windows(path, 8, {.vary = true});
  const DatasetPart list(windows, {1, 2, 5, 6, 7}), range(windows, 4, 7);
  const auto check = [](const DatasetPart& part, const std::vector<std::uint64_t>& all, const std::set<int>& own) {
    std::set<int> moved;
    for (std::uint64_t epoch = 1; epoch < 10; ++epoch) {
      Batch batch(part.fields(), all.size());
      part.read({all, epoch, 5}, batch);
      for (const std::int32_t byte : batch.input().as<std::int32_t>()) CHECK(own.contains(byte / 8));
      for (std::size_t i = 0; i < all.size(); ++i)
        if (batch.input().as<std::int32_t>()[i * 8] % 8 != 0) moved.insert(static_cast<int>(i));
    }
    return moved;
  };
  CHECK(check(list, {0, 1, 2, 3, 4}, {1, 2, 5, 6, 7}) == std::set{1, 3, 4});
  CHECK(check(range, {0, 1, 2}, {4, 5, 6}) == std::set{1, 2});
}

TEST_CASE("a text without a window is refused by name") {
  const TemporaryFolder folder;
  const auto path = folder / "text";
  const auto message = [&](const std::string& content, std::int64_t context) {
    write_file(path, content);
    return message_of<InputError>([&] { const TextWindows windows(path, context); });
  };
  require_mentions(message("abc", 3), {"text", "4 bytes", "found 3"});
  require_mentions(message("", 3), {"text", "empty"});
  require_mentions(message("abc", 0), {"from 1", "found 0"});
  require_mentions(message("\x1f\x8b gzip", 2), {"text", "gzipped"});
  require_mentions(message_of<InputError>([&] { const TextWindows windows(folder / "nowhere", 3); }), {"nowhere"});
  require_mentions(message_of<InputError>([&] { const TextWindows windows(folder.path(), 3); }), {"no file"});
}
