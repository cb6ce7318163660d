#include <ronda/core/data_files.hpp>
#include <ronda/data/detail/gzip_file.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

namespace ronda {
namespace {

constexpr int gzip_window = 16 + MAX_WBITS;  // in zlib this means gzip, with its header and sum

/// Two bytes per character, one of them 0 for a letter or digit at the beginning; or a byte order mark.
bool is_utf16(std::string_view text) {
  return text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff") ||
         (text.size() >= 2 && (text[0] == '\0') != (text[1] == '\0'));
}

}  // namespace

GzipFile::GzipFile(const std::filesystem::path& path) : path_(path) {
  if (std::error_code ignored; std::filesystem::is_directory(path, ignored))
    throw InputError(path.string() + " is a directory, expected a file");
  file_.reset(std::fopen(path.c_str(), "rbe"));
  if (!file_) throw InputError("cannot open " + path.string() + ": " + std::strerror(errno));
  note_data_file(path);
  std::setvbuf(file_.get(), nullptr, _IONBF, 0);  // input_ is the buffer
  gzipped_ = has_input() && stream_.avail_in >= 2 && input_[0] == 0x1f && input_[1] == 0x8b;
  if (!gzipped_) return;
  if (inflateInit2(&stream_, gzip_window) != Z_OK) throw ResourceError("zlib has no memory to unpack " + path.string());
  in_member_ = true;
}

GzipFile::~GzipFile() {
  if (gzipped_) inflateEnd(&stream_);
}

bool GzipFile::has_input() {
  if (stream_.avail_in > 0) return true;
  errno = 0;
  const std::size_t count = std::fread(input_.data(), 1, input_.size(), file_.get());
  if (std::ferror(file_.get()) != 0) throw damaged(std::string("cannot be read: ") + std::strerror(errno));
  stream_.next_in = input_.data();
  stream_.avail_in = static_cast<unsigned>(count);
  return count > 0;
}

std::size_t GzipFile::read(std::span<std::uint8_t> bytes) { return gzipped_ ? unpack(bytes) : copy(bytes); }

std::size_t GzipFile::copy(std::span<std::uint8_t> bytes) {
  std::size_t done = 0;
  while (done < bytes.size() && has_input()) {
    const std::size_t count = std::min<std::size_t>(bytes.size() - done, stream_.avail_in);
    std::memcpy(bytes.data() + done, stream_.next_in, count);
    stream_.next_in += count;
    stream_.avail_in -= static_cast<unsigned>(count);
    done += count;
  }
  return done;
}

std::size_t GzipFile::unpack(std::span<std::uint8_t> bytes) {
  std::size_t done = 0;
  while (done < bytes.size() && (in_member_ || next_member())) {
    if (!has_input()) throw broken("unexpected end of file");
    const std::size_t room = std::min<std::size_t>(bytes.size() - done, std::numeric_limits<unsigned>::max());
    stream_.next_out = bytes.data() + done;
    stream_.avail_out = static_cast<unsigned>(room);
    const int state = inflate(&stream_, Z_NO_FLUSH);
    if (state != Z_OK && state != Z_STREAM_END && state != Z_BUF_ERROR)
      throw broken(stream_.msg == nullptr ? "zlib's error " + std::to_string(state) : stream_.msg);
    done += room - stream_.avail_out;
    in_member_ = state != Z_STREAM_END;
  }
  return done;
}

bool GzipFile::next_member() {
  bool padded = false;
  for (; has_input() && *stream_.next_in == 0; padded = true) {
    ++stream_.next_in;
    --stream_.avail_in;
  }
  if (stream_.avail_in == 0) return false;
  if (padded) throw broken("something stands behind zeros at its end");
  inflateReset(&stream_);  // its header check refuses other bytes
  in_member_ = true;
  return true;
}

InputError GzipFile::broken(const std::string& how) const {
  return damaged("its gzip stream is broken or cut off (" + how + ")");
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
  if (is_utf16(text)) throw InputError(path.string() + " is UTF-16; convert it: iconv -f UTF-16 -t UTF-8 FILE > OTHER");
  if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);
  if (text.find('\n') == std::string::npos) std::ranges::replace(text, '\r', '\n');
  return text;
}

}  // namespace ronda
