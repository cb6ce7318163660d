#include <ronda/core/error.hpp>
#include <ronda/runtime/checkpoint/folder_lock.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <optional>

#include "support/catch.hpp"
#include "support/message.hpp"
#include "support/temporary_folder.hpp"

using namespace ronda;
using namespace ronda::test;

namespace {

struct Locking {
  std::string told;
  std::optional<FolderLock> lock;
  std::string take(const std::filesystem::path& folder, double patience) {
    return message_of<InputError>(
        [&] { lock.emplace(folder, patience, [&](const std::string& text) { told = text; }); });
  }
};

}  // namespace

TEST_CASE("a folder is one run's, who is named, until it ends") {
  const TemporaryFolder folder;
  Locking first, second;
  REQUIRE(first.take(folder.path(), 0).empty());
  require_mentions(second.take(folder.path(), 0),
                   {folder.path().string(), "another run's", "host ", "process " + std::to_string(::getpid())});
  first.lock.reset();
  REQUIRE(second.take(folder.path(), 0).empty());
}

TEST_CASE("a folder that is removed and made anew is whoever's comes first") {
  const TemporaryFolder parent;
  const std::filesystem::path folder = parent / "checkpoints";
  std::filesystem::create_directory(folder);
  Locking first, second;
  REQUIRE(first.take(folder, 0).empty());
  first.lock->renew();
  require_mentions(second.take(folder, 0), {"another run's"});
  std::filesystem::remove_all(folder);
  first.lock->renew();
  require_mentions(second.take(folder, 0), {"another run's"});
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  REQUIRE(second.take(folder, 0).empty());
  for (int again = 0; again < 2; ++again)
    require_mentions(message_of<InputError>([&] { first.lock->renew(); }), {folder.string(), "another run's"});
  second.lock.reset();
  first.lock->renew();
  require_mentions(second.take(folder, 0), {"another run's"});
}

TEST_CASE("a run that is killed leaves the folder free, and one that is about to end is waited for") {
  const TemporaryFolder folder;
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    Locking other;
    static_cast<void>(!::write(ready[1], other.take(folder.path(), 0).empty() ? "y" : "n", 1));
    for (;;) ::pause();
  }
  char taken = 0;
  REQUIRE(::read(ready[0], &taken, 1) == 1);
  REQUIRE(taken == 'y');
  Locking ours;
  require_mentions(ours.take(folder.path(), 0), {"process " + std::to_string(child)});
  const pid_t killer = ::fork();
  if (killer == 0) {
    ::usleep(300'000);
    ::kill(child, SIGKILL);
    ::_exit(0);
  }
  CHECK(ours.take(folder.path(), 60).empty());
  require_mentions(ours.told, {"waiting for another run", "process " + std::to_string(child)});
  for (const pid_t process : {killer, child}) ::waitpid(process, nullptr, 0);
}
