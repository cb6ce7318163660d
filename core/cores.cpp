#include <ronda/core/cores.hpp>
#include <ronda/core/text.hpp>

#include <algorithm>
#include <bit>
#include <fstream>
#include <iterator>
#include <omp.h>
#include <optional>
#include <sched.h>
#include <set>
#include <string>
#include <sys/stat.h>
#include <vector>

namespace ronda {

CoreMask CoreMask::of(int process) noexcept {
  CoreMask mask;
  if (sched_getaffinity(process, sizeof mask.words_, reinterpret_cast<cpu_set_t*>(mask.words_.data())) != 0)
    mask.words_ = {};
  if (process == 0) mask |= of_openmp();
  return mask;
}

CoreMask CoreMask::of_openmp() {
  CoreMask mask;
  if (omp_get_proc_bind() == omp_proc_bind_false) return mask;
  for (int place = 0; place < omp_get_num_places(); ++place) {
    std::vector<int> cores(static_cast<std::size_t>(omp_get_place_num_procs(place)));
    omp_get_place_proc_ids(place, cores.data());
    for (const int core : cores) {
      const auto index = static_cast<std::size_t>(core);
      if (core >= 0 && index < most) mask.words_[index / bits] |= 1UL << index % bits;
    }
  }
  return mask;
}

void CoreMask::bind_thread() const noexcept {
  static_cast<void>(sched_setaffinity(0, sizeof words_, reinterpret_cast<const cpu_set_t*>(words_.data())));
}

std::size_t CoreMask::count() const noexcept {
  std::size_t count = 0;
  for (const unsigned long word : words_) count += static_cast<std::size_t>(std::popcount(word));
  return count;
}

std::size_t CoreMask::physical() const {
  std::set<std::string> cores;  // each by the list of its threads
  for (std::size_t core = 0; core < most; ++core) {
    if (!has(core)) continue;
    std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(core) + "/topology/thread_siblings_list");
    std::string threads;
    if (!std::getline(file, threads)) return count();
    cores.insert(threads);
  }
  return cores.size();
}

CoreMask& CoreMask::operator|=(const CoreMask& other) noexcept {
  for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
  return *this;
}

std::string CoreMask::text() const {
  std::string text;
  for (std::size_t first = 0; first < most; ++first) {
    if (!has(first)) continue;
    std::size_t last = first;
    while (last + 1 < most && has(last + 1)) ++last;
    text += (text.empty() ? "" : ",") + std::to_string(first);
    if (last > first) text += "-" + std::to_string(last);
    first = last;
  }
  return text;
}

namespace {

namespace fs = std::filesystem;

/// A hierarchy of control groups that knows processor time, and this process's place in it.
struct Hierarchy {
  int version;
  fs::path mount, group;
};

bool lists(const std::string& controllers, const std::string& wanted) {
  TextReader list(controllers);
  for (std::string one; std::getline(list, one, ',');)
    if (one == wanted) return true;
  return false;
}

/// This process's groups, as /proc/self/cgroup has them: NUMBER:CONTROLLERS:PATH; version 2 is 0::PATH.
std::vector<Hierarchy> groups_of_process(const fs::path& root) {
  std::vector<Hierarchy> groups;
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    if (controllers.empty()) groups.push_back({2, {}, path});
    if (lists(controllers, "cpu")) groups.push_back({1, {}, path});
  }
  return groups;
}

/// Where a hierarchy is mounted, by /proc/self/mountinfo (proc(5)): … ROOT PLACE OPTIONS … - TYPE SOURCE OPTIONS.
fs::path mount_of(int version, const fs::path& root) {
  std::ifstream file(root / "proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    TextReader text(line);
    const std::vector<std::string> words{std::istream_iterator<std::string>(text), {}};
    const auto dash = std::find(words.begin(), words.end(), "-");
    if (words.size() < 5 || std::distance(dash, words.end()) < 4) continue;
    const std::string& type = dash[1];
    if (version == 2 ? type == "cgroup2" : type == "cgroup" && lists(dash[3], "cpu")) return words[4];
  }
  return {};
}

/// What the group in this folder has for itself; nothing where it has no limit.
std::optional<double> limit_in(const fs::path& folder, int version) {
  double quota = 0, period = 0;
  if (version == 2) {
    std::ifstream file(folder / "cpu.max");  // `max 100000` is no limit
    file >> quota >> period;
  } else {
    std::ifstream(folder / "cpu.cfs_quota_us") >> quota;  // -1 is no limit
    std::ifstream(folder / "cpu.cfs_period_us") >> period;
  }
  if (!(quota > 0 && period > 0)) return std::nullopt;
  return quota / period;
}

}  // namespace

std::vector<CpuQuota> cpu_quotas(const fs::path& root) {
  std::vector<CpuQuota> quotas;
  for (Hierarchy& hierarchy : groups_of_process(root)) {
    hierarchy.mount = mount_of(hierarchy.version, root);
    if (hierarchy.mount.empty()) continue;
    const fs::path top = root / hierarchy.mount.relative_path();
    // In a container the path may be the host's, of which nothing is seen but the container's own group, at the top.
    for (fs::path group = hierarchy.group.relative_path();; group = group.parent_path()) {
      const fs::path folder = group.empty() ? top : top / group;
      struct stat status {};
      if (const auto cores = limit_in(folder, hierarchy.version); cores && ::stat(folder.c_str(), &status) == 0)
        quotas.push_back({status.st_ino, *cores});
      if (group.empty()) break;
    }
  }
  return quotas;
}

int cores_of_process() {
  auto cores = static_cast<double>(CoreMask::of(0).count());
  for (const CpuQuota& quota : cpu_quotas()) cores = std::min(cores, quota.cores);
  return std::max(static_cast<int>(cores), 1);
}

}  // namespace ronda
