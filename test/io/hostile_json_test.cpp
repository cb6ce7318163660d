// Files that are JSON, damaged or made to do harm: InputError is all that ever escapes, and memory stays bounded.
#include <ronda/core/error.hpp>
#include <ronda/core/hash.hpp>
#include <ronda/core/random.hpp>
#include <ronda/runtime/io/checkpoint_manifest.hpp>
#include <ronda/runtime/io/plan_file.hpp>
#include <ronda/runtime/io/safetensors.hpp>

#include <unistd.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "support/catch.hpp"
#include "support/memory.hpp"
#include "support/message.hpp"
#include "support/sanitizer.hpp"
#include "support/seed.hpp"
#include "support/temporary_folder.hpp"

using namespace ronda;
using namespace ronda::test;
namespace fs = std::filesystem;

namespace {

std::string safetensors_of(const std::string& header, const std::string& data = {}) {
  const std::uint64_t length = header.size();
  std::string text(sizeof length, '\0');
  std::memcpy(text.data(), &length, sizeof length);
  return text + header + data;
}

/// `text`, sealed as a manifest is.
std::string sealed_again(std::string text) {
  const std::size_t end = text.rfind(",\n  \"hash\"");
  if (end != std::string::npos) text.resize(end);
  return text + ",\n  \"hash\": \"" + Hash().add(text).text() + "\"\n}\n";
}

/// A kind of file: what is one, how a header's worth of JSON becomes one, and how it is read.
struct Kind {
  std::string name, sound;
  std::function<std::string(std::string)> wrap;
  std::function<void(const fs::path&)> read;
};

std::vector<Kind> kinds() {
  const TemporaryFolder folder;
  const auto same = [](std::string text) { return text; };
  std::vector<Kind> all;
  write_plan(folder / "plan", {{{"processor", "abacus"}}, {{"question", "choice"}}, {"line"}, "0123456789abcdef"});
  all.push_back({"plan", read_file(folder / "plan"), same, [](const fs::path& p) { (void)read_plan(p); }});
  CheckpointManifest manifest;
  manifest.counters = {{"count", {1, 2}}};
  manifest.averaged = {"batch_norm1.running_mean"};
  manifest.options = {{"seed", "1"}};
  manifest.plan = {"line"};
  manifest.history.resize(1);
  manifest.parts = {{"part-0.safetensors", {12, "0123456789abcdef"}, {"a"}, {"b"}}};
  all.push_back({"manifest", manifest_text(manifest), sealed_again, [](const fs::path& p) { (void)read_manifest(p); }});
  write_part(folder / "part", manifest.parts[0]);
  all.push_back({"part", read_file(folder / "part"), sealed_again, [](const fs::path& p) { (void)read_part(p); }});
  all.push_back({"safetensors",
                 R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
                 [](const std::string& text) { return safetensors_of(text, "data"); },
                 [](const fs::path& p) { (void)read_safetensors(p); }});
  return all;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("sound files are read") {
  const TemporaryFolder folder;
  for (const Kind& kind : kinds()) {
    INFO(kind.name);
    write_file(folder / "file", kind.wrap(kind.sound));
    REQUIRE_NOTHROW(kind.read(folder / "file"));
  }
}

TEST_CASE("a number beyond all numbers, and brackets without end, are errors with the file's name") {
  const TemporaryFolder folder;
  const std::string deep(100'000, '['), deeper = [] {
    std::string text;
    for (int i = 0; i < 100'000; ++i) text += "{\"a\":";
    return text;
  }();
  for (const Kind& kind : kinds()) {
    if (kind.name == "summary") continue;  // is left out where it cannot be read
    for (const std::string& value :
         {std::string("1e999"), std::string("-1e999"), deep, deeper, deep + std::string(100'000, ']')}) {
      INFO(kind.name << " " << value.substr(0, 10));
      write_file(folder / "file", kind.wrap("{\n  \"a\": " + value + "\n}\n"));
      require_mentions(message_of<InputError>([&] { kind.read(folder / "file"); }), {"file"});
    }
  }
}

TEST_CASE("numbers of another kind or out of range are no whole numbers") {
  const TemporaryFolder folder;
  const auto message = [&](const std::string& from, const std::string& to) {
    write_file(folder / "file", sealed_again(replaced(kinds()[1].sound, from, to)));
    return message_of<InputError>([&] { (void)read_manifest(folder / "file"); });
  };
  require_mentions(message("\"step\": 0", "\"step\": 1e300"), {"file", "\"step\"", "whole number", "1e+300"});
  require_mentions(message("\"step\": 0", "\"step\": 1.5"), {"\"step\"", "whole number", "1.5"});
  require_mentions(message("\"step\": 0", "\"step\": -1"), {"\"step\"", "-1"});
  require_mentions(message("\"ranks\": 1", "\"ranks\": 4294967297"), {"\"ranks\"", "4294967297"});
  require_mentions(message("\"ranks\": 1", "\"ranks\": true"), {"\"ranks\"", "true"});
  require_mentions(message("\"bytes\": 12", "\"bytes\": 1e30"), {"\"bytes\"", "1e+30"});
  require_mentions(message("\"count\": [\n      1,", "\"count\": [\n      1e300,"), {"\"counters\"", "1e+300"});
  require_mentions(message("\"audited\": false", "\"audited\": 0"), {"\"audited\"", "true or false"});
  require_mentions(message("\"weight\": 0.0", "\"weight\": \"0\""), {"\"weight\"", "number"});
  require_mentions(message("\"current\": {", "\"current\": 5, \"other\": {"), {"\"current\""});
  require_mentions(message("\"history\": [", "\"history\": [5, "), {"\"history\""});
  require_mentions(message("\"parts\": [", "\"parts\": [[], "), {"\"parts\""});
}

TEST_CASE("what is read takes a small multiple of the file") {
  const TemporaryFolder folder;
  const auto list = [](std::size_t bytes, const std::function<std::string(std::size_t)>& piece) {
    std::string text;
    for (std::size_t i = 0; text.size() < bytes; ++i) text += piece(i) + ",";
    return text;
  };
  const auto file_of = [](const std::string& value) { return "{\n  \"a\": " + value + "\n}\n"; };
  const auto small = [](std::size_t) { return "0"; };
  const auto empty = [](std::size_t) { return "[]"; };
  const auto keyed = [](std::size_t i) { return '"' + std::to_string(i) + "\":0"; };
  const auto tensor = [](std::size_t i) {
    return '"' + std::to_string(i) + R"(":{"dtype":"F32","shape":[],"data_offsets":[0,4]})";
  };
  constexpr std::size_t mebi = 1 << 20;
  for (const std::size_t bytes : {mebi, 18 * mebi})
    for (const std::string& text :
         {file_of("[" + list(bytes, small) + "0]"), file_of("[" + list(bytes, empty) + "0]"),
          file_of("{" + list(bytes, keyed) + "\"b\":0}"), file_of('"' + std::string(bytes, 'a') + '"'),
          "{\n" + list(bytes, tensor) + "\"b\":0\n}\n"})
      for (const Kind& kind : kinds()) {
        if (sanitized && bytes > mebi) continue;
        INFO(kind.name << ", " << bytes << " bytes of " << text.substr(0, 30));
        write_file(folder / "file", kind.wrap(text));
        const MemoryPeak peak;
        if (kind.name == "summary")
          kind.read(folder / "file");
        else
          CHECK_THROWS_AS(kind.read(folder / "file"), InputError);
        CHECK(peak.bytes() < 64 * bytes);
        CHECK(peak.bytes() < 400 * mebi);
      }
}

TEST_CASE("thousands of damages: InputError or a file that is read") {
  const TemporaryFolder folder;
  const RngKey key(30 * test::seed(), Purpose::test);
  std::uint64_t draw = 0;
  const auto below = [&](std::size_t bound) { return static_cast<std::size_t>(key.below(bound, draw++)); };
  const std::vector<std::string> words{
      "1e999", "-1", "null", "1e300", "[]",   "{}",       "[[[[", "\"\\u0000\"", "18446744073709551616",
      "\xff",  ",",  "\"",   "}",     "true", "\"a\":1,", "0.5"};
  for (const Kind& kind : kinds())
    for (int i = 0; i < (sanitized ? 150 : 500); ++i) {
      std::string text = kind.sound;
      for (std::size_t changes = 1 + below(3); changes > 0 && !text.empty(); --changes) {
        const std::size_t at = below(text.size());
        switch (below(5)) {
          case 0: text[at] = static_cast<char>(text[at] ^ (1 << below(8))); break;
          case 1: text.insert(at, words[below(words.size())]); break;
          case 2: text.erase(at, 1 + below(20)); break;
          case 3: text.insert(at, text.substr(at, 1 + below(40))); break;
          default: {  // a value becomes another
            const auto colon = text.find(':', at);
            if (colon != std::string::npos)
              text.replace(colon + 1, text.find_first_of(",}]", colon) - colon - 1, words[below(words.size())]);
          }
        }
      }
      write_file(folder / "file", below(10) == 0 ? text : kind.wrap(text));
      INFO(kind.name << " " << i << "\n" << text);
      try {
        kind.read(folder / "file");
      } catch (const InputError& error) {
        REQUIRE(std::string(error.what()).size() < 1000);
      }
    }
}

TEST_CASE("no tensor's values are read where the names already tell that the file does not fit") {
  const TemporaryFolder folder;
  constexpr std::uint64_t size = std::uint64_t{3} << 30;  // a hole: no disk holds it
  write_file(folder / "file", safetensors_of(R"({"a":{"dtype":"F32","shape":[)" + std::to_string(size / 4) +
                                             R"(],"data_offsets":[0,)" + std::to_string(size) + "]}}"));
  fs::resize_file(folder / "file", fs::file_size(folder / "file") + size);
  const MemoryPeak peak;
  const SafetensorsFile file(folder / "file");
  REQUIRE(file.entries().size() == 1);
  CHECK(file.entries()[0].shape == Shape{size / 4});
  CHECK(peak.bytes() < (1 << 20));
}
