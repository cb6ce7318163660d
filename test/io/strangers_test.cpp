// Files in folders that others write to as well.
#include <ronda/core/error.hpp>
#include <ronda/runtime/io/atomic_file.hpp>
#include <ronda/runtime/io/metrics_file.hpp>
#include <ronda/runtime/io/whole_file.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <optional>
#include <string>

#include "support/catch.hpp"
#include "support/message.hpp"
#include "support/temporary_folder.hpp"

using namespace ronda;
using namespace ronda::test;
namespace fs = std::filesystem;

namespace {

constexpr uid_t stranger = 65534;

/// Ways in which the project writes to a file of a given name.
const auto& ways() {
  using Write = std::function<void(const fs::path&)>;
  static const std::pair<const char*, Write> all[] = {
      {"whole file", [](const fs::path& path) { write_text(path, "new"); }},
      {"creatable", [](const fs::path& path) { check_creatable(path); }},
      {"metrics", [](const fs::path& path) { MetricsFile(path).on_start({}); }},
  };
  return all;
}

/// A folder as /tmp is, and in it what is not ours; only root can make that.
struct SharedFolder : TemporaryFolder {
  SharedFolder() { REQUIRE(::chmod(path().c_str(), 01777) == 0); }
  [[nodiscard]] fs::path foreign_link(std::string_view name, const fs::path& target) const {
    fs::create_symlink(target, *this / name);
    REQUIRE(::lchown((*this / name).c_str(), stranger, stranger) == 0);
    return *this / name;
  }
};

bool root() {
  if (::geteuid() == 0) return true;
  WARN("only root can make files of others");
  return false;
}

mode_t mode_of(const fs::path& path) {
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return status.st_mode & 07777;
}

}  // namespace

TEST_CASE("nothing is written through a stranger's link") {
  if (!root()) return;
  const SharedFolder folder;
  const TemporaryFolder home;
  write_file(home / "precious", "mine");
  ::chmod((home / "precious").c_str(), 0600);
  const auto link = folder.foreign_link("link", home / "precious");
  const auto dangling = folder.foreign_link("dangling", home / "made");
  const auto way = folder.foreign_link("way", home.path());
  const TemporaryFolder open;  // where no sticky bit keeps links from being put in the place of others
  ::chmod(open.path().c_str(), 0777);
  fs::create_symlink(home.path(), open / "way");
  ::lchown((open / "way").c_str(), stranger, stranger);
  for (const auto& [name, write] : ways())
    for (const auto& path : {link, dangling, way / "precious", way / "made", open / "way/made"}) {
      INFO(name << " " << path);
      require_mentions(message_of<InputError>([&] { write(path); }), {path.filename().string(), "link", "65534"});
      CHECK(read_file(home / "precious") == "mine");
      CHECK(mode_of(home / "precious") == 0600);
      CHECK_FALSE(fs::exists(home / "made"));
    }
}

TEST_CASE("links of one's own are followed, and stay") {
  const SharedFolder folder;
  const TemporaryFolder home;
  write_file(home / "file", "old");
  fs::create_symlink(home / "file", folder / "link");
  fs::create_symlink("link", folder / "second");
  fs::create_symlink(home / "made", folder / "dangling");
  fs::create_symlink("../" + home.path().filename().string(), folder / "way");
  write_text(folder / "second", "new");
  CHECK(fs::is_symlink(folder / "second"));
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(read_file(home / "file") == "new");
  write_text(folder / "way/file", "newer");
  CHECK(read_file(home / "file") == "newer");
  write_text(folder / "dangling", "made");
  CHECK(read_file(home / "made") == "made");
  fs::create_symlink("loop", folder / "loop");
  require_mentions(message_of<InputError>([&] { write_text(folder / "loop", ""); }), {"loop"});
}

TEST_CASE("a file that is open under a number is not replaced") {
  const TemporaryFolder folder;
  write_file(folder / "log", "precious\n");
  const int log = ::open((folder / "log").c_str(), O_WRONLY | O_APPEND);
  REQUIRE(log >= 0);
  fs::create_symlink("/proc/self/fd/" + std::to_string(log), folder / "link");
  for (const auto& [name, write] : ways())
    for (const fs::path& path : {fs::path("/proc/self/fd") / std::to_string(log),
                                 fs::path("/dev/fd") / std::to_string(log), folder / "link"}) {
      INFO(name << " " << path);
      require_mentions(message_of<InputError>([&] { write(path); }), {path.string(), (folder / "log").string()});
      CHECK(read_file(folder / "log") == "precious\n");
    }
  ::close(log);
}

TEST_CASE("names of files in the making cannot be foretold") {
  const SharedFolder folder;
  write_file(folder / "precious", "mine");
  const fs::path foretold = (folder / "file").string() + ".part." + std::to_string(::getpid());
  fs::create_symlink(folder / "precious", foretold);
  write_text(folder / "file", "new");
  CHECK(read_file(folder / "precious") == "mine");
  CHECK(read_file(folder / "file") == "new");
  CHECK_FALSE(fs::is_symlink(folder / "file"));
}

TEST_CASE("two that write to one place with one process id leave one of the two, whole") {
  const TemporaryFolder folder;
  std::optional<AtomicFile> first(std::in_place, folder / "file"), second(std::in_place, folder / "file");
  first->write("first ");
  second->write("second ");
  first->write("first");
  second->write("second");
  first->commit();
  CHECK(read_file(folder / "file") == "first first");
  second->commit();
  CHECK(read_file(folder / "file") == "second second");
}

TEST_CASE("a file keeps its mode, and a new one gets the usual one") {
  const TemporaryFolder folder;
  write_file(folder / "secret", "old");
  write_file(folder / "open", "old");
  ::chmod((folder / "secret").c_str(), 0600);
  ::chmod((folder / "open").c_str(), 0666);
  const mode_t usual = ::umask(027);
  for (const char* name : {"secret", "open", "new"}) {
    AtomicFile file(folder / name);
    for (const auto& entry : fs::directory_iterator(folder.path()))  // at no time is it wider
      if (entry.path().filename().string().starts_with("secret.part")) CHECK(mode_of(entry.path()) == 0600);
    file.write("new");
    file.commit();
  }
  ::umask(usual);
  CHECK(mode_of(folder / "secret") == 0600);
  CHECK(mode_of(folder / "open") == 0666);
  CHECK(mode_of(folder / "new") == 0640);
}

TEST_CASE("another owner's file gives its mode to none of ours, nor widens it") {
  if (!root()) return;
  const TemporaryFolder folder;
  write_file(folder / "wide", "old");
  write_file(folder / "narrow", "old");
  ::chmod((folder / "wide").c_str(), 06777);
  ::chmod((folder / "narrow").c_str(), 0600);
  for (const char* name : {"wide", "narrow"}) REQUIRE(::lchown((folder / name).c_str(), stranger, stranger) == 0);
  const mode_t usual = ::umask(022);
  for (const char* name : {"wide", "narrow"}) write_text(folder / name, "new");
  ::umask(usual);
  CHECK(mode_of(folder / "wide") == 0644);
  CHECK(mode_of(folder / "narrow") == 0600);
}

TEST_CASE("a stranger's pipe takes nothing and holds nobody up") {
  if (!root()) return;
  const SharedFolder folder;
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0666) == 0);
  REQUIRE(::lchown((folder / "pipe").c_str(), stranger, stranger) == 0);
  for (const auto& [name, write] : ways()) {
    INFO(name);
    require_mentions(message_of<InputError>([&] { write(folder / "pipe"); }), {"pipe", "65534"});
  }
}

TEST_CASE("metrics are not written to a stranger's file, nor to one of ours by a stranger's name") {
  if (!root()) return;
  const SharedFolder folder;
  const TemporaryFolder home;
  write_file(home / "precious", "mine");
  fs::create_hard_link(home / "precious", folder / "name");
  require_mentions(message_of<InputError>([&] { MetricsFile(folder / "name").on_start({}); }), {"name"});
  CHECK(read_file(home / "precious") == "mine");
  write_file(folder / "theirs", "theirs");
  REQUIRE(::lchown((folder / "theirs").c_str(), stranger, stranger) == 0);
  require_mentions(message_of<InputError>([&] { MetricsFile(folder / "theirs").on_start({}); }), {"theirs", "65534"});
  CHECK(read_file(folder / "theirs") == "theirs");
}
