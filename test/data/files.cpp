#include "data/files.hpp"

#include <zlib.h>

namespace ronda::test {

std::string little_endian(std::uint64_t number, std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) text += static_cast<char>(number >> (8 * i) & 0xff);
  return text;
}

std::string npy_of(const std::string& dictionary, const std::string& values, int version) {
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  return std::string("\x93NUMPY") + static_cast<char>(version) + '\0' + little_endian(dictionary.size(), length_bytes) +
         dictionary + values;
}

std::string npy(const std::string& type, const std::string& shape, const std::string& values) {
  std::string dictionary = "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }";
  while ((10 + dictionary.size() + 1) % 64 != 0) dictionary += ' ';
  return npy_of(dictionary + "\n", values);
}

namespace {

/// By zlib.
/// @param window_bits  negative: the deflated stream alone; and 16 more: as gzip
std::string packed_by(int window_bits, const std::string& content) {
  std::string packed(content.size() + 100, '\0');
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, window_bits, 9, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

}  // namespace

std::string gzipped(const std::string& content) { return packed_by(MAX_WBITS + 16, content); }

std::string zip(const std::vector<ZipMember>& members, bool wide, const std::string& comment) {
  std::string archive, directory;
  for (const ZipMember& member : members) {
    const std::string packed = member.deflated ? packed_by(-MAX_WBITS, member.content) : member.content;
    const auto sum =
        crc32(0, reinterpret_cast<const Bytef*>(member.content.data()), static_cast<uInt>(member.content.size()));
    const std::string method = little_endian(member.deflated ? 8 : 0, 2);
    const std::string sizes = little_endian(member.content.size(), 8) + little_endian(packed.size(), 8);
    const std::uint64_t at = archive.size();
    archive += "PK\3\4" + little_endian(45, 2) + little_endian(0, 2) + method + little_endian(0, 4) +
               little_endian(sum, 4) + little_endian(0xffffffff, 4) + little_endian(0xffffffff, 4) +
               little_endian(member.name.size(), 2) + little_endian(20, 2) + member.name + little_endian(1, 2) +
               little_endian(16, 2) + sizes + packed;
    const std::string extra = wide ? little_endian(1, 2) + little_endian(24, 2) + sizes + little_endian(at, 8) : "";
    const auto number = [&](std::uint64_t value) { return little_endian(wide ? 0xffffffff : value, 4); };
    directory += "PK\1\2" + little_endian(45, 2) + little_endian(45, 2) + little_endian(0, 2) + method +
                 little_endian(0, 4) + little_endian(sum, 4) + number(packed.size()) + number(member.content.size()) +
                 little_endian(member.name.size(), 2) + little_endian(extra.size(), 2) + little_endian(0, 10) +
                 number(at) + member.name + extra;
  }
  const std::uint64_t begin = archive.size(), end = begin + directory.size();
  archive += directory;
  if (wide)
    archive += "PK\6\6" + little_endian(44, 8) + little_endian(45, 2) + little_endian(45, 2) + little_endian(0, 8) +
               little_endian(members.size(), 8) + little_endian(members.size(), 8) +
               little_endian(directory.size(), 8) + little_endian(begin, 8) + "PK\6\7" + little_endian(0, 4) +
               little_endian(end, 8) + little_endian(1, 4);
  const std::uint64_t count = wide ? 0xffff : members.size();
  return archive + "PK\5\6" + little_endian(0, 4) + little_endian(count, 2) + little_endian(count, 2) +
         little_endian(directory.size(), 4) + little_endian(wide ? 0xffffffff : begin, 4) +
         little_endian(comment.size(), 2) + comment;
}

}  // namespace ronda::test
