#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <iterator>

#include <ronda/core/error.hpp>
#include <ronda/runtime/io/atomic_file.hpp>
#include <ronda/runtime/io/whole_file.hpp>

#include "support/catch.hpp"
#include "support/message.hpp"
#include "support/temporary_folder.hpp"

using namespace ronda;
using namespace ronda::test;

namespace {

auto entries(const TemporaryFolder& folder) {
  return std::distance(std::filesystem::directory_iterator(folder.path()), {});
}

}  // namespace

TEST_CASE("a file appears when it is committed, whole") {
  const TemporaryFolder folder;
  write_file(folder / "file", "old");
  AtomicFile file(folder / "file");
  file.write("new ");
  file.write("content");
  REQUIRE(read_file(folder / "file") == "old");
  REQUIRE(entries(folder) == 2);
  file.commit();
  REQUIRE(read_file(folder / "file") == "new content");
  REQUIRE(entries(folder) == 1);
}

TEST_CASE("a file is there or not, unless nobody can tell") {
  const TemporaryFolder folder;
  write_text(folder / "file", "text");
  REQUIRE(read_text(folder / "file") == "text");
  REQUIRE(is_there(folder / "file"));
  REQUIRE(is_there(folder.path()));
  REQUIRE_FALSE(is_there(folder / "other"));
  REQUIRE_FALSE(is_there(folder / "file/inside"));
  require_mentions(message_of<InputError>([&] { static_cast<void>(is_there(folder / std::string(300, 'x'))); }),
                   {"cannot look at", "too long"});
}

TEST_CASE("without a commit nothing happened") {
  const TemporaryFolder folder;
  write_file(folder / "file", "old");
  AtomicFile(folder / "file").write("half of the n");
  REQUIRE(read_file(folder / "file") == "old");
  REQUIRE(entries(folder) == 1);
  check_creatable(folder / "other");
  REQUIRE(entries(folder) == 1);
}

TEST_CASE("a link stays a link, and what is no file is written directly") {
  const TemporaryFolder folder;
  write_file(folder / "target", "old");
  std::filesystem::create_symlink(folder / "target", folder / "link");
  AtomicFile linked(folder / "link");
  linked.write("new");
  linked.commit();
  REQUIRE(std::filesystem::is_symlink(folder / "link"));
  REQUIRE(read_file(folder / "target") == "new");

  AtomicFile null("/dev/null");
  null.write("nobody reads this");
  null.commit();
  REQUIRE(std::filesystem::is_character_file("/dev/null"));
}

TEST_CASE("what cannot be created or written is said, with the reason") {
  const TemporaryFolder folder;
  const auto create = [](const std::filesystem::path& path) {
    return message_of<InputError>([&] { check_creatable(path); });
  };
  require_mentions(create(folder / "missing/file"), {"missing/file", "No such file or directory"});
  require_mentions(create(folder.path()), {"Is a directory"});
  require_mentions(create(""), {"cannot create"});

  AtomicFile full("/dev/full");
  require_mentions(message_of<ResourceError>([&] { full.write("x"); }), {"/dev/full", "No space left"});
}

TEST_CASE("where files may not be so large a write fails, and the process lives") {
  const TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_DFL);
    const rlimit little{1 << 16, 1 << 16};
    ::setrlimit(RLIMIT_FSIZE, &little);
    try {
      write_text(folder / "large", std::string(1 << 17, '-'));
    } catch (const ResourceError&) {
      ::_exit(std::filesystem::is_empty(folder.path()) ? 0 : 1);
    }
    ::_exit(2);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  REQUIRE(WEXITSTATUS(status) == 0);
}
