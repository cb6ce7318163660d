#pragma once
#include <filesystem>
#include <string>

#include <unistd.h>

namespace ronda::test {

/// A folder's name among the temporary files that nobody else has; what is there goes with this object.
class Folder {
 public:
  explicit Folder(const std::string& name)
      : path_(std::filesystem::temp_directory_path() / ("ronda-" + name + "-" + std::to_string(::getpid()))) {}
  Folder(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace ronda::test
