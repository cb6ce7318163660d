#include <ronda/core/error.hpp>
#include <ronda/data/detail/picture_reader.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <initializer_list>
#include <span>
#include <string>

namespace ronda {
namespace {

void read_whole(const std::filesystem::path& path, std::vector<std::byte>& bytes) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file ? static_cast<std::streamoff>(file.tellg()) : -1;
  if (size < 0) throw PictureError("it cannot be read");
  bytes.resize(static_cast<std::size_t>(size));
  file.seekg(0);
  if (!file.read(reinterpret_cast<char*>(bytes.data()), size)) throw PictureError("it cannot be read");
}

bool begins_with(std::span<const std::byte> file, std::initializer_list<int> magic) {
  return file.size() >= magic.size() && std::equal(magic.begin(), magic.end(), file.begin(),
                                                   [](int a, std::byte b) { return a == std::to_integer<int>(b); });
}

void decode(std::span<const std::byte> file, Picture& picture) {
  if (begins_with(file, {0xff, 0xd8, 0xff})) return decode_jpeg(file, picture);
  if (begins_with(file, {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'})) return decode_png(file, picture);
  if (begins_with(file, {'P', '5'}) || begins_with(file, {'P', '6'})) return decode_netpbm(file, picture);
  throw PictureError("expected a JPEG, a PNG, or a binary PGM or PPM, found none's first bytes in " +
                     std::to_string(file.size()) + " bytes");
}

ResampleAxis middle(std::int64_t extent, std::int64_t shorter, std::int64_t size, std::int64_t resize) {
  const std::int64_t resized = extent == shorter ? resize : resize * extent / shorter;
  const double scale = static_cast<double>(extent) / static_cast<double>(resized);
  const auto begin = static_cast<double>(std::llrint(static_cast<double>(resized - size) / 2));
  return {begin * scale, scale, 0, extent};
}

ResampleAxis part(std::int64_t begin, std::int64_t extent, std::int64_t size) {
  return {static_cast<double>(begin), static_cast<double>(extent) / static_cast<double>(size), begin, begin + extent};
}

}  // namespace

void check_picture_sizes(std::int64_t size, std::int64_t resize) {
  constexpr std::int64_t most = 1 << 14;
  if (size < 1 || size > resize || resize > most)
    throw InputError("pictures are from 1 to .resize = " + std::to_string(resize) +
                     " pixels large, and that is at most " + std::to_string(most) +
                     ", found .size = " + std::to_string(size));
}

void PictureReader::read(const std::filesystem::path& path) {
  read_whole(path, file_);
  decode(file_, picture_);
}

void PictureReader::write_middle(std::int64_t size, std::int64_t resize, float* pixels) {
  const std::int64_t height = picture_.height, width = picture_.width, shorter = std::min(height, width);
  resample_(picture_, middle(height, shorter, size, resize), middle(width, shorter, size, resize), size, pixels);
}

void PictureReader::write_part(const CropBox& box, std::int64_t size, float* pixels) {
  resample_(picture_, part(box.top, box.height, size), part(box.left, box.width, size), size, pixels);
}

}  // namespace ronda
