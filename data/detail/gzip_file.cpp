#include <ronda/core/data_files.hpp>
#include <ronda/data/detail/gzip_file.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

namespace ronda {

GzipFile::GzipFile(const std::filesystem::path& path) : path_(path), file_(nullptr) {
  if (std::error_code ignored; std::filesystem::is_directory(path, ignored))
    throw InputError(path.string() + " is a directory, expected a file");
  file_ = gzopen(path.c_str(), "rb");
  if (file_ == nullptr) throw InputError("cannot open " + path.string() + ": " + std::strerror(errno));
  note_data_file(path);
  constexpr std::uintmax_t least = 1 << 13, most = 1 << 18;
  std::error_code unknown;  // of a pipe: then the size is the largest number
  gzbuffer(file_, static_cast<unsigned>(std::clamp(std::filesystem::file_size(path, unknown), least, most)));
}

std::size_t GzipFile::read(std::span<std::uint8_t> bytes) {
  constexpr std::size_t most = std::numeric_limits<int>::max();  // that zlib counts
  const int count = gzread(file_, bytes.data(), static_cast<unsigned>(std::min(bytes.size(), most)));
  int error = Z_OK;
  const char* text = gzerror(file_, &error);
  if (error == Z_ERRNO) throw damaged(std::string("cannot be read: ") + std::strerror(errno));
  if (error != Z_OK) throw damaged(std::string("its gzip stream is broken or cut off (") + text + ")");
  return static_cast<std::size_t>(std::max(count, 0));
}

InputError GzipFile::damaged(const std::string& what) const {
  return InputError(path_.string() + ": " + what + "; the file is damaged or not the right one: fetch it anew");
}

std::string whole_text(const std::filesystem::path& path) {
  GzipFile file(path);
  constexpr std::size_t most = std::size_t{1} << 20;
  std::string text;
  bool more = true;
  for (std::size_t piece = std::size_t{1} << 14; more; piece = std::min(2 * piece, most)) {
    const std::size_t have = text.size();
    text.resize(have + piece);
    const std::size_t found = file.read({reinterpret_cast<std::uint8_t*>(text.data()) + have, piece});
    text.resize(have + found);
    more = found == piece;
  }
  if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);
  return text;
}

}  // namespace ronda
