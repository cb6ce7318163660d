#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/core/buffer.hpp>
#include <ronda/core/error.hpp>

struct zip;         // libzip's zip_t
struct zip_source;  // libzip's zip_source_t

namespace ronda {

/// A ZIP archive that is mapped, read by libzip: stored and deflated members, larger than 4 GiB too, not encrypted.
class ZipFile {
 public:
  /// Reads the directory. Throws InputError that names the file.
  explicit ZipFile(const std::filesystem::path& path);

  /// The member's bytes: a part of the mapping if it is stored; memory if it was deflated, whose checksum is compared.
  /// Throws InputError that names file and member, listing the names if there is no such member.
  [[nodiscard]] Buffer read(std::string_view name) const;

 private:
  struct Member {
    std::string name;
    std::uint64_t index, packed_bytes, bytes;
    bool deflated;
  };
  struct Discard {
    void operator()(zip* archive) const noexcept;
  };

  [[nodiscard]] InputError damaged(const std::string& what) const;
  [[nodiscard]] InputError damaged(const Member& member, const std::string& what) const;
  [[nodiscard]] Member member_at(std::uint64_t index) const;
  [[nodiscard]] Buffer mapped(const Member& member) const;
  [[nodiscard]] Buffer inflated(const Member& member) const;

  std::filesystem::path path_;
  std::shared_ptr<const Buffer> file_;
  std::unique_ptr<zip, Discard> archive_;
  zip_source* bytes_ = nullptr;  ///< of the mapping; the archive owns it
  std::vector<Member> members_;
};

}  // namespace ronda
