#pragma once
#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/runtime/io/atomic_file.hpp>
#include <ronda/runtime/io/file_lock.hpp>
#include <ronda/runtime/io/storage.hpp>

#include "support/temporary_folder.hpp"

namespace ronda::test {

/// The file system with faults: an operation fails, the disk is full, or all that was not synchronised is lost. For one
/// thread.
class FaultyStorage final : public Storage {
 public:
  /// The n-th operation from now, counted from 0, fails with EIO.
  void fail_at(std::size_t operation) { failing_ = done_ + operation; }
  /// Whether that operation has come.
  [[nodiscard]] bool failed() const noexcept { return failing_ && done_ > *failing_; }
  void set_full(bool full) noexcept { full_ = full; }

  /// The machine loses power: entries of folders are as they were when these were last synchronised.
  void lose_power() {
    for (; !unsynchronised_.empty(); unsynchronised_.pop_back()) unsynchronised_.back().undo();
    failing_.reset();
  }

  [[nodiscard]] std::unique_ptr<File> create(const Path& path) override {
    require("create", path, true);
    return std::make_unique<FaultyFile>(*this, path);
  }
  [[nodiscard]] std::string read(const Path& path, std::size_t most) override {
    if (fault()) throw InputError("cannot read " + path.string() + ": fault");
    return file_system().read(path, most);
  }
  [[nodiscard]] std::vector<Path> list(const Path& folder, std::error_code& error) override {
    error = fault();
    return error ? std::vector<Path>() : file_system().list(folder, error);
  }
  [[nodiscard]] std::unique_ptr<FileLock> open_lock(const Path& path) override {
    if (fault()) throw InputError("cannot create " + path.string() + ": fault");
    return file_system().open_lock(path);
  }
  [[nodiscard]] std::error_code make_folder(const Path& folder) override {
    if (const auto error = fault(true)) return error;
    if (!std::filesystem::exists(folder)) note(folder.parent_path(), [folder] { std::filesystem::remove_all(folder); });
    return file_system().make_folder(folder);
  }
  [[nodiscard]] std::error_code rename(const Path& from, const Path& to) override {
    if (const auto error = fault()) return error;
    note(to.parent_path(), [from, to] { std::filesystem::rename(to, from); });
    return file_system().rename(from, to);
  }
  [[nodiscard]] std::error_code exchange(const Path& one, const Path& other) override {
    if (const auto error = fault()) return error;
    note(one.parent_path(), [one, other] { static_cast<void>(file_system().exchange(one, other)); });
    return file_system().exchange(one, other);
  }
  [[nodiscard]] std::error_code remove(const Path& path) override {
    if (const auto error = fault()) return error;
    if (!std::filesystem::exists(path)) return {};
    const Path kept = removed_ / std::to_string(done_);
    note(path.parent_path(), [path, kept] { std::filesystem::rename(kept, path); });
    return file_system().rename(path, kept);
  }
  void synchronise(const Path& folder) override {
    require("synchronise", folder);
    keep(folder);
  }

 private:
  class FaultyFile final : public File {
   public:
    FaultyFile(FaultyStorage& storage, Path path)
        : storage_(storage), path_(std::move(path)), file_(file_system().create(path_)) {}
    void write(std::span<const std::byte> bytes) override {
      storage_.require("write", path_, true);
      file_->write(bytes);
    }
    void commit() override {
      storage_.require("commit", path_);
      file_->commit();
      storage_.keep(path_.parent_path());
    }

   private:
    FaultyStorage& storage_;
    Path path_;
    std::unique_ptr<File> file_;
  };
  struct Change {
    Path folder;
    std::function<void()> undo;
  };

  /// Counts an operation. @param needs_room  fails if the disk is full
  [[nodiscard]] std::error_code fault(bool needs_room = false) {
    if (failing_ == done_++) return std::make_error_code(std::errc::io_error);
    return full_ && needs_room ? std::make_error_code(std::errc::no_space_on_device) : std::error_code();
  }
  void require(const std::string& what, const Path& path, bool needs_room = false) {
    const std::error_code error = fault(needs_room);
    const std::string text = "cannot " + what + " " + path.string() + ": " + error.message();
    if (error == std::errc::no_space_on_device) throw NoRoomError(text);
    if (error) throw ResourceError(text);
  }
  void note(Path folder, std::function<void()> undo) {
    unsynchronised_.push_back({std::move(folder), std::move(undo)});
  }
  void keep(const Path& folder) {
    std::erase_if(unsynchronised_, [&](const Change& change) { return change.folder == folder; });
  }

  const TemporaryFolder removed_;  ///< what is removed, until it is certain
  std::vector<Change> unsynchronised_;
  std::size_t done_ = 0;
  std::optional<std::size_t> failing_;
  bool full_ = false;
};

}  // namespace ronda::test
