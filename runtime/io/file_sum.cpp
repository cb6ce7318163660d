#include <ronda/core/error.hpp>
#include <ronda/core/hash.hpp>
#include <ronda/runtime/io/file_sum.hpp>
#include <ronda/runtime/io/whole_file.hpp>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <span>
#include <vector>

namespace ronda {

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
