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
    throw InputError("pictures are from 1 to " + setting("resize", resize) + " pixels large, and that is at most " +
                     std::to_string(most) + ", found " + setting("size", size));
}

void PictureReader::decode(const std::filesystem::path& path, const WantedPart& wanted) {
  read_whole(path, file_);
  if (begins_with(file_, {0xff, 0xd8, 0xff})) return decode_jpeg(file_, picture_, wanted);
  if (begins_with(file_, {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'})) return decode_png(file_, picture_);
  if (begins_with(file_, {'P', '5'}) || begins_with(file_, {'P', '6'})) return decode_netpbm(file_, picture_);
  throw PictureError("expected a JPEG, a PNG, or a binary PGM or PPM, found none's first bytes in " +
                     std::to_string(file_.size()) + " bytes");
}

void PictureReader::read_middle(const std::filesystem::path& path, std::int64_t size, std::int64_t resize,
                                float* pixels) {
  decode(path, nullptr);
  const std::int64_t height = picture_.height, width = picture_.width, shorter = std::min(height, width);
  resample_(picture_, middle(height, shorter, size, resize), middle(width, shorter, size, resize), size, pixels);
}

void PictureReader::read_part(const std::filesystem::path& path, const WantedPart& box, std::int64_t size,
                              float* pixels) {
  decode(path, box);
  const CropBox wanted = box(picture_.height, picture_.width);
  resample_(picture_, part(wanted.top, wanted.height, size), part(wanted.left, wanted.width, size), size, pixels);
}

}  // namespace ronda
