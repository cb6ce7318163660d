#include <ronda/core/error.hpp>
#include <ronda/core/hash.hpp>
#include <ronda/runtime/io/atomic_file.hpp>
#include <ronda/runtime/io/whole_file.hpp>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <span>
#include <string>
#include <vector>

namespace ronda {

bool is_there(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) return false;
  if (error) throw InputError("cannot look at " + path.string() + ": " + error.message());
  return true;
}

void require_regular(const std::filesystem::path& path) {
  std::error_code ignored;  // what cannot be looked at cannot be opened either
  const auto status = std::filesystem::status(path, ignored);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    throw InputError(path.string() + " is no file");
}

std::string read_text(const std::filesystem::path& path, std::size_t most) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InputError("cannot open " + path.string() + ": " + std::strerror(errno));
  constexpr std::size_t piece = std::size_t{1} << 16;
  std::string text;
  for (std::size_t have = 0; file; have = text.size()) {
    text.resize(have + piece);
    file.read(text.data() + have, piece);
    text.resize(have + static_cast<std::size_t>(file.gcount()));
    if (text.size() > most)
      throw InputError(path.string() + ": expected at most " + std::to_string(most) + " bytes, and there are more");
  }
  if (file.bad() || !file.eof()) throw InputError("cannot read " + path.string());
  return text;
}

void write_text(const std::filesystem::path& path, std::string_view text, Storage& storage) {
  const auto file = storage.create(path);
  file->write(std::as_bytes(std::span(text)));
  file->commit();
}

FileSum sum_of(const std::filesystem::path& path) {
  require_regular(path);
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InputError("cannot open " + path.string() + ": " + std::strerror(errno));
  std::vector<char> piece(std::size_t{1} << 20);
  StreamHash hash;
  FileSum sum;
  while (file) {
    file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    const auto count = static_cast<std::size_t>(file.gcount());
    hash.add(std::as_bytes(std::span(piece.data(), count)));
    sum.bytes += count;
  }
  if (file.bad() || !file.eof()) throw InputError("cannot read " + path.string());
  sum.hash = hash.text();
  return sum;
}

}  // namespace ronda
