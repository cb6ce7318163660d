#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <ronda/core/cores.hpp>

#include "support/catch.hpp"

using namespace ronda;

namespace {

namespace fs = std::filesystem;

/// A file system's root with control groups in it.
class Machine {
 public:
  Machine(const std::string& groups, const std::string& mounts) {
    fs::remove_all(root_);
    write("proc/self/cgroup", groups);
    write("proc/self/mountinfo", mounts);
  }
  Machine(const Machine&) = delete;
  ~Machine() { fs::remove_all(root_); }

  void write(const fs::path& file, const std::string& text) const {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text << "\n";
  }
  [[nodiscard]] std::vector<double> cores() const {
    std::vector<double> cores;
    for (const CpuQuota& quota : cpu_quotas(root_)) cores.push_back(quota.cores);
    return cores;
  }
  [[nodiscard]] const fs::path& root() const { return root_; }

 private:
  fs::path root_ = fs::temp_directory_path() / ("ronda-cgroups-" + std::to_string(::getpid()));
};

using Cores = std::vector<double>;

const std::string version_2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate";
const std::string version_1 =
    "31 23 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "32 23 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct";

}  // namespace

TEST_CASE("a quota of version 2 is the group's own and those of the groups around it") {
  const Machine machine("0::/jobs/job7/step0", version_2);
  REQUIRE(machine.cores().empty());
  machine.write("sys/fs/cgroup/jobs/job7/step0/cpu.max", "max 100000");
  machine.write("sys/fs/cgroup/jobs/job7/cpu.max", "150000 100000");
  machine.write("sys/fs/cgroup/jobs/cpu.max", "400000 50000");
  REQUIRE(machine.cores() == Cores{1.5, 8});
  machine.write("sys/fs/cgroup/jobs/job7/step0/cpu.max", "50000 100000");
  REQUIRE(machine.cores() == Cores{0.5, 1.5, 8});
}

TEST_CASE("a container sees its own group at the top, by version 2 and 1") {
  const Machine second("0::/", version_2);
  second.write("sys/fs/cgroup/cpu.max", "200000 100000");
  REQUIRE(second.cores() == Cores{2});
  const Machine first("5:memory:/docker/3f\n3:cpu,cpuacct:/docker/3f\n0::/docker/3f", version_1);
  first.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1");
  first.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000");
  REQUIRE(first.cores().empty());
  first.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "250000");
  REQUIRE(first.cores() == Cores{2.5});
}

TEST_CASE("groups are told apart, and what makes no sense is no limit") {
  const Machine machine("0::/a/b", version_2);
  machine.write("sys/fs/cgroup/a/b/cpu.max", "100000 100000");
  machine.write("sys/fs/cgroup/a/cpu.max", "100000 100000");
  const auto quotas = cpu_quotas(machine.root());
  REQUIRE(quotas.size() == 2);
  REQUIRE(quotas[0].group != quotas[1].group);
  for (const std::string text : {"", "none", "0 100000", "100000", "100000 0", "-5 10"}) {
    machine.write("sys/fs/cgroup/a/b/cpu.max", text);
    REQUIRE(machine.cores() == Cores{1});
  }
  REQUIRE(cpu_quotas(machine.root() / "nowhere").empty());
}
