#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/core/buffer.hpp>
#include <ronda/core/error.hpp>

namespace ronda {

/// A ZIP archive that is mapped: stored and deflated members, larger than 4 GiB too (PKWARE's APPNOTE 6.3, with zip64),
/// neither encrypted nor on several disks.
class ZipFile {
 public:
  /// Reads the directory. Throws InputError that names the file.
  explicit ZipFile(const std::filesystem::path& path);

  [[nodiscard]] std::vector<std::string> names() const;
  /// The member's bytes: a part of the mapping where it is stored, memory where it was deflated, whose checksum is
  /// compared. Throws InputError that names file and member, listing the names where there is no such member.
  [[nodiscard]] Buffer read(std::string_view name) const;

 private:
  struct Member {
    std::string name;
    std::uint64_t method, packed_bytes, bytes, checksum, header;
  };

  [[nodiscard]] std::span<const std::byte> all() const { return {file_->data(), file_->bytes()}; }
  [[nodiscard]] InputError damaged(const std::string& what) const;
  [[nodiscard]] std::uint64_t number(std::uint64_t at, std::size_t bytes) const;
  void read_directory();
  Member read_entry(std::uint64_t at) const;
  void widen(Member& member, std::uint64_t at, std::uint64_t end) const;
  [[nodiscard]] std::span<const std::byte> packed(const Member& member) const;
  [[nodiscard]] Buffer inflated(const Member& member) const;

  std::filesystem::path path_;
  std::shared_ptr<const Buffer> file_;
  std::vector<Member> members_;
};

}  // namespace ronda
