#include <ronda/core/text.hpp>
#include <ronda/data/detail/mapped_file.hpp>
#include <ronda/data/detail/zip_file.hpp>

#include <zip.h>

#include <algorithm>
#include <cstddef>

namespace ronda {
namespace {

/// libzip's report of a call that failed.
class ZipError {
 public:
  ZipError() { zip_error_init(&error_); }
  ~ZipError() { zip_error_fini(&error_); }
  ZipError(const ZipError&) = delete;
  ZipError& operator=(const ZipError&) = delete;

  operator zip_error_t*() { return &error_; }
  [[nodiscard]] std::string text() { return printable(zip_error_strerror(&error_)); }

 private:
  zip_error_t error_{};
};

/// A member that is being read.
class OpenMember {
 public:
  /// @param flags  ZIP_FL_COMPRESSED: the bytes as they lie in the archive
  OpenMember(zip_t* archive, std::uint64_t index, zip_flags_t flags)
      : archive_(archive), file_(zip_fopen_index(archive, index, flags)) {}
  ~OpenMember() {
    if (file_ != nullptr) zip_fclose(file_);
  }
  OpenMember(const OpenMember&) = delete;
  OpenMember& operator=(const OpenMember&) = delete;

  /// Whether `to` was filled.
  bool fill(std::byte* to, std::uint64_t bytes) {
    std::uint64_t filled = 0;
    while (file_ != nullptr && filled < bytes) {
      const zip_int64_t more = zip_fread(file_, to + filled, bytes - filled);
      if (more <= 0) return false;
      filled += static_cast<std::uint64_t>(more);
    }
    return file_ != nullptr;
  }
  /// Whether nothing is left, and the checksum is the archive's.
  bool is_sound_at_end() {
    std::byte more{};
    return zip_fread(file_, &more, 1) == 0;
  }
  [[nodiscard]] std::string why() {
    if (file_ == nullptr) return zip_strerror(archive_);
    const bool checksum = zip_error_code_zip(zip_file_get_error(file_)) == ZIP_ER_CRC;
    return checksum ? "its checksum is another" : zip_file_strerror(file_);
  }

 private:
  zip_t* archive_;
  zip_file_t* file_;
};

}  // namespace

void ZipFile::Discard::operator()(zip* archive) const noexcept { zip_discard(archive); }

ZipFile::ZipFile(const std::filesystem::path& path)
    : path_(path), file_(std::make_shared<const Buffer>(map_file(path))) {
  ZipError error;
  bytes_ = zip_source_buffer_create(file_->data(), file_->bytes(), 0, error);
  if (bytes_ == nullptr) throw ResourceError("cannot read " + path_.string() + ": " + error.text());
  archive_.reset(zip_open_from_source(bytes_, ZIP_RDONLY, error));
  if (archive_ == nullptr) {
    zip_source_free(bytes_);
    throw damaged(error.text());
  }
  const zip_int64_t count = zip_get_num_entries(archive_.get(), 0);
  for (zip_int64_t i = 0; i < count; ++i) members_.push_back(member_at(static_cast<std::uint64_t>(i)));
}

Buffer ZipFile::read(std::string_view name) const {
  const auto member = std::ranges::find(members_, name, &Member::name);
  if (member == members_.end())
    throw InputError(path_.string() + " has no '" + printable(name) + "'; it has " +
                     listed(members_, [](const Member& each) { return printable(each.name); }));
  return member->deflated ? inflated(*member) : mapped(*member);
}

InputError ZipFile::damaged(const std::string& what) const {
  return InputError(path_.string() + ": " + what + "; the file is damaged or no ZIP archive");
}

InputError ZipFile::damaged(const Member& member, const std::string& what) const {
  return damaged("'" + printable(member.name) + "': " + what);
}

ZipFile::Member ZipFile::member_at(std::uint64_t index) const {
  zip_stat_t status;
  zip_stat_init(&status);
  if (zip_stat_index(archive_.get(), index, ZIP_FL_ENC_RAW, &status) != 0)
    throw damaged("member " + std::to_string(index) + ": " + zip_strerror(archive_.get()));
  Member member{status.name, index, status.comp_size, status.size, status.comp_method == ZIP_CM_DEFLATE};
  if (status.encryption_method != ZIP_EM_NONE || (!member.deflated && status.comp_method != ZIP_CM_STORE))
    throw InputError(path_.string() + ": '" + printable(member.name) + "' is encrypted or packed by method " +
                     std::to_string(status.comp_method) +
                     ", expected one that is stored or deflated, as by numpy.savez and numpy.savez_compressed");
  return member;
}

/// libzip tells not where a member lies. So one byte is read of it: the position behind that byte is that of the
/// source.
Buffer ZipFile::mapped(const Member& member) const {
  if (member.packed_bytes != member.bytes)
    throw damaged(member,
                  "expected " + std::to_string(member.bytes) + " bytes, found " + std::to_string(member.packed_bytes));
  if (member.bytes == 0) return {};
  OpenMember open(archive_.get(), member.index, ZIP_FL_COMPRESSED);
  std::byte first{};
  if (!open.fill(&first, 1)) throw damaged(member, open.why());
  const auto begin = static_cast<std::uint64_t>(zip_source_tell(bytes_) - 1);
  if (member.bytes > file_->bytes() - begin)
    throw damaged(
        member, "expected " + std::to_string(member.bytes) + " bytes, found " + std::to_string(file_->bytes() - begin));
  return {file_->data() + begin, member.bytes, Device(), file_};
}

Buffer ZipFile::inflated(const Member& member) const {
  constexpr std::uint64_t most = 1032;  // bytes that one byte can become; so a file takes no more memory than it fills
  if (member.packed_bytes > file_->bytes() || member.bytes / most > member.packed_bytes)
    throw damaged(member, std::to_string(member.packed_bytes) + " packed bytes of a file of " +
                              std::to_string(file_->bytes()) + " cannot become " + std::to_string(member.bytes));
  Buffer buffer = Buffer::host(member.bytes);
  OpenMember open(archive_.get(), member.index, 0);
  if (!open.fill(buffer.data(), member.bytes) || !open.is_sound_at_end())
    throw damaged(member, "expected " + std::to_string(member.bytes) + " bytes: " + open.why());
  return buffer;
}

}  // namespace ronda
