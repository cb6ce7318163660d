#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include <sstream>

#include <ronda/core/process.hpp>

#include "support/catch.hpp"

using namespace ronda;

namespace {

std::string name_in(const std::string& cpuinfo) {
  std::istringstream text(cpuinfo);
  return processor_name(text);
}

}  // namespace

TEST_CASE("a process knows its parent") {
  REQUIRE(parent_of(::getpid()) == ::getppid());
  REQUIRE(parent_of(-1) == 0);
  REQUIRE_FALSE(is_launcher(::getpid()));
  REQUIRE_FALSE(is_launcher(-1));
}

TEST_CASE("a process that has started others has as many children, until it sees their ends") {
  const int before = children_of(::getpid());
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  CHECK(children_of(::getpid()) == before + 1);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  CHECK(children_of(::getpid()) == before);
}

TEST_CASE("a processor has the name that it gives, or the numbers that tell it from others") {
  REQUIRE(name_in("processor\t: 0\nmodel\t\t: 17\nmodel name\t: AMD EPYC: 9R14\n\nmodel name\t: another\n") ==
          "AMD EPYC: 9R14");
  const std::string arm =
      "processor\t: 0\nBogoMIPS\t: 243.75\nFeatures\t:\nCPU implementer\t: 0x41\n"
      "CPU architecture: 8\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\nCPU revision\t: 1\n";
  REQUIRE(name_in(arm + "\nprocessor\t: 1\nCPU part\t: 0xd40\n") ==
          "CPU implementer 0x41, CPU part 0xd0c, CPU variant 0x3");
  REQUIRE(name_in("nothing of the kind\n:\n") == "unknown");
  REQUIRE(name_in("") == "unknown");
}
