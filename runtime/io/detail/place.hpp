#pragma once
#include <sys/stat.h>

#include <deque>
#include <filesystem>
#include <optional>
#include <string>

#include <ronda/core/error.hpp>
#include <ronda/runtime/io/detail/descriptor.hpp>

// For this room alone: not installed.
namespace ronda {

/// Where a file is to be written: an open folder, and a name in it that is no link. All that is done there is done by
/// that folder and that name, so links that change meanwhile lead nowhere else.
///
/// Links are followed where they are ours or root's. Another user's link is followed only as a folder on the way, and
/// only where not everybody may write to the folder that it lies in: elsewhere whoever likes could choose which of our
/// files is replaced.
class Place {
 public:
  /// Throws InputError where the path leads nowhere, to a folder, or by way of another user's link.
  explicit Place(const std::filesystem::path& path);

  /// As the caller named it, for messages.
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  [[nodiscard]] int folder() const noexcept { return folder_.number(); }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// Of what is there; nothing where nothing is.
  [[nodiscard]] const std::optional<struct stat>& found() const noexcept { return found_; }
  /// Something is there that is no regular file: a pipe, a terminal, /dev/null.
  [[nodiscard]] bool is_special() const noexcept { return found_ && !S_ISREG(found_->st_mode); }

  /// Opens what is no regular file. Throws InputError.
  [[nodiscard]] Descriptor open_special() const;
  /// Opens for writing at the end, and makes the file where there is none. Throws InputError, also where strangers may
  /// have put the file there.
  [[nodiscard]] Descriptor open_to_append() const;

  [[nodiscard]] InputError cannot_create(int error) const;

 private:
  void walk(const std::filesystem::path& path);
  void enter(const std::string& folder);
  void follow(const struct stat& link, bool last);
  [[nodiscard]] bool leads_to_open_file(struct stat& target) const;
  [[nodiscard]] bool everybody_writes_here() const;
  [[nodiscard]] InputError is_open_file() const;
  [[nodiscard]] InputError is_foreign(const char* kind, uid_t owner) const;

  std::filesystem::path path_;
  Descriptor folder_;
  std::string name_;
  std::deque<std::string> rest_;  ///< names that are still to be walked
  int links_ = 0;
  bool by_system_ = false;  ///< the name is a link of /proc to what has no path
  std::optional<struct stat> found_;
};

}  // namespace ronda
