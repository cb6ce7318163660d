#include <ronda/runtime/io/atomic_file.hpp>
#include <ronda/runtime/io/file_lock.hpp>
#include <ronda/runtime/io/storage.hpp>
#include <ronda/runtime/io/whole_file.hpp>

#include <fcntl.h>

#include <cerrno>
#include <cstdio>

namespace ronda {
namespace {

class FileSystem final : public Storage {
 public:
  [[nodiscard]] std::unique_ptr<File> create(const Path& path) override { return std::make_unique<AtomicFile>(path); }
  [[nodiscard]] std::string read(const Path& path, std::size_t most) override { return read_text(path, most); }
  [[nodiscard]] std::vector<Path> list(const Path& folder, std::error_code& error) override {
    std::vector<Path> entries;
    for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
      entries.push_back(entry->path());
    return entries;
  }
  [[nodiscard]] std::unique_ptr<FileLock> open_lock(const Path& path) override {
    return std::make_unique<FileLock>(path);
  }
  [[nodiscard]] std::error_code make_folder(const Path& folder) override {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    return error;
  }
  [[nodiscard]] std::error_code rename(const Path& from, const Path& to) override {
    return error_of(::rename(from.c_str(), to.c_str()));
  }
  [[nodiscard]] std::error_code exchange(const Path& one, const Path& other) override {
    return error_of(::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE));
  }
  [[nodiscard]] std::error_code remove(const Path& path) override {
    std::error_code error;
    std::filesystem::remove_all(path, error);
    return error;
  }
  void synchronise(const Path& folder) override { synchronise_folder(folder); }

 private:
  static std::error_code error_of(int result) noexcept {
    return result == 0 ? std::error_code() : std::error_code(errno, std::generic_category());
  }
};

}  // namespace

Storage& file_system() noexcept {
  static FileSystem system;
  return system;
}

}  // namespace ronda
