#include <ronda/core/listed.hpp>
#include <ronda/core/printable.hpp>
#include <ronda/data/detail/mapped_file.hpp>
#include <ronda/data/detail/zip_file.hpp>

#include <zlib.h>

#include <algorithm>
#include <limits>

namespace ronda {
namespace {

enum Method : std::uint64_t { stored = 0, deflated = 8 };
constexpr std::uint64_t end_signature = 0x06054b50, wide_end_signature = 0x06064b50, locator_signature = 0x07064b50,
                        entry_signature = 0x02014b50, local_signature = 0x04034b50;
constexpr std::size_t end_bytes = 22, locator_bytes = 20, entry_bytes = 46, local_bytes = 30;
constexpr std::uint64_t elsewhere = 0xffffffff;  // in 32 bits: the zip64 field has the number

/// A deflated stream that is taken apart.
class Inflation {
 public:
  Inflation() {
    if (inflateInit2(&stream_, -MAX_WBITS) != Z_OK) throw ResourceError("zlib cannot begin to unpack");
  }
  ~Inflation() { inflateEnd(&stream_); }
  Inflation(const Inflation&) = delete;
  Inflation& operator=(const Inflation&) = delete;

  /// Whether `from` becomes `to`, no byte more or less.
  bool unpack(std::span<const std::byte> from, std::span<std::byte> to) {
    constexpr std::size_t most = std::numeric_limits<uInt>::max();  // that zlib counts
    std::byte nothing{};
    stream_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(from.data()));
    stream_.next_out = reinterpret_cast<Bytef*>(to.empty() ? &nothing : to.data());
    for (int status = Z_OK; status != Z_STREAM_END;) {
      const auto in = static_cast<uInt>(std::min(from.size(), most)),
                 out = static_cast<uInt>(std::min(to.size(), most));
      stream_.avail_in = in;
      stream_.avail_out = out;
      status = inflate(&stream_, Z_NO_FLUSH);
      if (status != Z_OK && status != Z_STREAM_END) return false;  // damaged, or no room, or no more to read
      from = from.subspan(in - stream_.avail_in);
      to = to.subspan(out - stream_.avail_out);
    }
    return from.empty() && to.empty();
  }

 private:
  z_stream stream_{};
};

std::uint64_t checksum_of(std::span<const std::byte> bytes) {
  return crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
}

}  // namespace

ZipFile::ZipFile(const std::filesystem::path& path)
    : path_(path), file_(std::make_shared<const Buffer>(map_file(path))) {
  read_directory();
}

std::vector<std::string> ZipFile::names() const {
  std::vector<std::string> names;
  for (const Member& member : members_) names.push_back(member.name);
  return names;
}

Buffer ZipFile::read(std::string_view name) const {
  const auto member = std::ranges::find(members_, name, &Member::name);
  if (member == members_.end())
    throw InputError(path_.string() + " has no '" + printable(name) + "'; it has " +
                     listed(members_, [](const Member& each) { return printable(each.name); }));
  if (member->method == deflated) return inflated(*member);
  const std::span<const std::byte> bytes = packed(*member);
  return {const_cast<std::byte*>(bytes.data()), bytes.size(), Device(), file_};
}

InputError ZipFile::damaged(const std::string& what) const {
  return InputError(path_.string() + ": " + what + "; the file is damaged or no ZIP archive");
}

/// Little-endian.
std::uint64_t ZipFile::number(std::uint64_t at, std::size_t bytes) const {
  if (at > file_->bytes() || bytes > file_->bytes() - at)
    throw damaged("expected a number at byte " + std::to_string(at) + ", found only " + std::to_string(file_->bytes()) +
                  " bytes");
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) value |= std::to_integer<std::uint64_t>(all()[at + i]) << (8 * i);
  return value;
}

void ZipFile::read_directory() {
  constexpr std::size_t longest_comment = 0xffff;
  const std::uint64_t size = file_->bytes();
  if (size < end_bytes) throw damaged("expected an archive, found " + std::to_string(size) + " bytes");
  std::uint64_t end = size - end_bytes;
  const std::uint64_t least = end > longest_comment ? end - longest_comment : 0;
  while (number(end, 4) != end_signature)
    if (end-- == least) throw damaged("expected the end of a directory, found none");
  std::uint64_t count = number(end + 10, 2), at = number(end + 16, 4);
  if (end >= locator_bytes && number(end - locator_bytes, 4) == locator_signature) {  // zip64
    const std::uint64_t wide = number(end - locator_bytes + 8, 8);
    if (number(wide, 4) != wide_end_signature) throw damaged("expected the end of a large directory, found none");
    count = number(wide + 32, 8);
    at = number(wide + 48, 8);
  }
  if (count > size / entry_bytes) throw damaged("its directory promises " + std::to_string(count) + " members");
  for (std::uint64_t i = 0; i < count; ++i) {
    members_.push_back(read_entry(at));
    at += entry_bytes + number(at + 28, 2) + number(at + 30, 2) + number(at + 32, 2);
  }
}

ZipFile::Member ZipFile::read_entry(std::uint64_t at) const {
  if (number(at, 4) != entry_signature)
    throw damaged("expected member " + std::to_string(members_.size()) + ", found none");
  const std::uint64_t name_bytes = number(at + 28, 2), extra_bytes = number(at + 30, 2), name_at = at + entry_bytes;
  if (name_bytes > 0) (void)number(name_at + name_bytes - 1, 1);  // it is there
  Member member{std::string(reinterpret_cast<const char*>(file_->data() + name_at), name_bytes),
                number(at + 10, 2),
                number(at + 20, 4),
                number(at + 24, 4),
                number(at + 16, 4),
                number(at + 42, 4)};
  widen(member, name_at + name_bytes, name_at + name_bytes + extra_bytes);
  if ((number(at + 8, 2) & 1) != 0 || (member.method != stored && member.method != deflated))
    throw InputError(path_.string() + ": '" + printable(member.name) + "' is encrypted or packed by method " +
                     std::to_string(member.method) +
                     ", expected one that is stored or deflated, as by numpy.savez and numpy.savez_compressed");
  return member;
}

/// Numbers that 32 bits cannot hold are in the extra field 1 of [at, end), in this order.
void ZipFile::widen(Member& member, std::uint64_t at, std::uint64_t end) const {
  while (at + 4 <= end) {
    const std::uint64_t id = number(at, 2), bytes = number(at + 2, 2);
    std::uint64_t from = at + 4;
    if (id == 1)
      for (std::uint64_t* each : {&member.bytes, &member.packed_bytes, &member.header})
        if (*each == elsewhere && from + 8 <= at + 4 + bytes) {
          *each = number(from, 8);
          from += 8;
        }
    at += 4 + bytes;
  }
}

std::span<const std::byte> ZipFile::packed(const Member& member) const {
  const auto wrong = [&](const std::string& what) { return damaged("'" + printable(member.name) + "': " + what); };
  if (number(member.header, 4) != local_signature) throw wrong("expected its header, found none");
  const std::uint64_t begin =
      member.header + local_bytes + number(member.header + 26, 2) + number(member.header + 28, 2);
  const std::uint64_t there = begin < file_->bytes() ? file_->bytes() - begin : 0;
  if (member.packed_bytes > there)
    throw wrong("expected " + std::to_string(member.packed_bytes) + " bytes, found " + std::to_string(there));
  if (member.method == stored && member.packed_bytes != member.bytes)
    throw wrong("expected " + std::to_string(member.bytes) + " bytes, found " + std::to_string(member.packed_bytes));
  return all().subspan(begin, member.packed_bytes);
}

Buffer ZipFile::inflated(const Member& member) const {
  constexpr std::uint64_t most = 1032;  // bytes that one byte can become; so a file takes no more memory than it fills
  const std::span<const std::byte> from = packed(member);
  const auto wrong = [&](const std::string& what) { return damaged("'" + printable(member.name) + "': " + what); };
  if (member.bytes / most > from.size())
    throw wrong(std::to_string(from.size()) + " packed bytes cannot become " + std::to_string(member.bytes));
  Buffer buffer = Buffer::host(member.bytes);
  const std::span<std::byte> to(buffer.data(), member.bytes);
  if (!Inflation().unpack(from, to))
    throw wrong("expected " + std::to_string(member.bytes) + " bytes, and they cannot be unpacked");
  if (checksum_of(to) != member.checksum) throw wrong("its checksum is another");
  return buffer;
}

}  // namespace ronda
