#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>

#include <ronda/collectives/launcher.hpp>
#include <ronda/core/cores.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/core/process.hpp>
#include <ronda/core/text.hpp>
#include <ronda/layers/primitives.hpp>

#include "option_names.hpp"
#include "finding.hpp"

namespace ronda::apps {
namespace {

namespace fs = std::filesystem;
using State = Finding::State;

/// Room in /dev/shm below which a node's ranks may have to pass messages: a small model's gradients, for a few ranks.
constexpr std::size_t little_shared_memory = std::size_t{256} << 20;

/// That `text` begins with.
std::optional<std::size_t> number(const std::string& text) {
  std::size_t value = 0;
  const bool good = std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc();
  return good ? std::optional(value) : std::nullopt;
}

int allowed_cores() { return std::max(static_cast<int>(CoreMask::of(0).count()), 1); }

int numa_nodes() {
  int nodes = 0;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/sys/devices/system/node", ignored)) {
    const std::string name = entry.path().filename();
    nodes += name.starts_with("node") && name.size() > 4 && name[4] >= '0' && name[4] <= '9' ? 1 : 0;
  }
  return std::max(nodes, 1);
}

/// Processors that share the first one's core, by the kernel's list of them: `0,64` or `0-1`.
std::string threads_a_core() {
  TextReader list(first_line("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list"));
  std::size_t threads = 0;
  for (std::string part; std::getline(list, part, ',');) {
    const auto dash = part.find('-');
    const auto first = number(part), last = dash == std::string::npos ? first : number(part.substr(dash + 1));
    if (!first || !last || *last < *first) return "unknown threads";
    threads += *last - *first + 1;
  }
  return threads == 0 ? "unknown threads" : counted(static_cast<std::int64_t>(threads), "thread");
}

/// Of the quotas that this process is under the least; 0: none.
double least_quota() {
  double least = 0;
  for (const CpuQuota& quota : cpu_quotas()) least = least == 0 ? quota.cores : std::min(least, quota.cores);
  return least;
}

/// Cores that mpirun, or its daemon here, may use and binds no rank to; 0 where this process is none of its ranks.
int left_by_launcher(int mine) {
  const int launcher = ::getppid();
  const Launcher ranks = Launcher::from_environment();
  if (!is_launcher(launcher) || ranks.on_host == 0) return 0;
  return std::max(static_cast<int>(CoreMask::of(launcher).count()) - mine * ranks.on_host, 0);
}

Finding cores() {
  const int mine = allowed_cores(), all = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  std::string text = processor_name() + ", " + vector_instructions() + "; " + counted(mine, "processor") +
                     " for this process of " + std::to_string(all) + ", " + threads_a_core() + " a core, " +
                     counted(numa_nodes(), "NUMA node");
  const double quota = least_quota();
  if (quota > 0 && quota < mine) {
    TextWriter limit;
    limit << ", time for " << quota << " of them";
    return {"cores", text + limit.str(), State::off,
            "start as many ranks times threads as there is time for, or give the container more (docker run --cpus)"};
  }
  if (mine < all) text += ": bound";
  const int left = left_by_launcher(mine);
  if (left > 0)
    return {
        "cores", text + " by mpirun, which leaves " + std::to_string(left) + " to nobody", State::off,
        "for all of them: mpirun --bind-to none, or --map-by slot:PE=N with N cores a rank; more --threads than cores "
        "are slower"};
  return {"cores", text};
}

/// Number of threads of a rank without --threads, on the cores of this process.
Finding threads_of_rank() {
  const ThreadCount threads = count_threads(0, cores_of_process());
  if (threads.note.empty())
    return {"threads", counted(threads.count, "thread") + " per rank, unless --threads is given"};
  OptionNames names;
  names.add("threads", "threads");
  return {"threads", threads.note.text_with(names), State::off};
}

Finding bfloat16() {
  const BFloat16Support support = bfloat16_support();
  if (support.fast) return {"bfloat16", support.text + ": --dtype mixed_bfloat16"};
  return {"bfloat16", support.text, State::missing, support.remedy};
}

Finding memory() {
  std::ifstream file("/proc/meminfo");
  std::size_t total = 0, available = 0, kibibytes = 0;
  for (std::string name, rest; file >> name >> kibibytes && std::getline(file, rest);) {
    if (name == "MemTotal:") total = kibibytes << 10;
    if (name == "MemAvailable:") available = kibibytes << 10;
  }
  std::string text = human_bytes(available) + " free of " + human_bytes(total);
  const std::string limit = first_line("/sys/fs/cgroup/memory.max");
  if (!limit.empty() && limit != "max") {
    const auto bytes = number(limit);
    text += ", a limit of " + (bytes ? human_bytes(*bytes) : "'" + limit + "'") + " for this container";
  }
  return {"memory", text};
}

Finding shared_memory() {
  struct statvfs system {};
  if (::statvfs("/dev/shm", &system) != 0 || ::access("/dev/shm", W_OK) != 0)
    return {"/dev/shm", "cannot be written to", State::off,
            "mount it (mount -t tmpfs tmpfs /dev/shm); without it a node's ranks pass messages, several times slower"};
  const std::size_t free = std::size_t{system.f_bavail} * system.f_frsize;
  const std::string text = human_bytes(free) + " free";
  if (free >= little_shared_memory) return {"/dev/shm", text};
  return {"/dev/shm", text, State::off,
          "large models need more, or a node's ranks pass messages, several times slower: docker run --shm-size=4g"};
}

Finding huge_pages() {
  const std::string modes = first_line("/sys/kernel/mm/transparent_hugepage/enabled");
  const auto begin = modes.find('['), end = modes.find(']');
  if (begin == std::string::npos || end == std::string::npos)
    return {"huge pages", "this kernel has no transparent ones", State::off, "large models may be a little slower"};
  const std::string mode = modes.substr(begin + 1, end - begin - 1);
  if (mode != "never") return {"huge pages", "transparent, " + mode};
  return {"huge pages", "transparent, never", State::off,
          "as root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"};
}

/// Pages that a GPU copies from have to stay where they are, as do those of fast networks.
Finding locked_memory() {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return {"locked memory", "the limit is not known"};
  if (limit.rlim_cur == RLIM_INFINITY) return {"locked memory", "no limit"};
  return {"locked memory", "up to " + human_bytes(limit.rlim_cur) + ", which matters to fast networks alone"};
}

}  // namespace

Findings look_at_machine() {
  return {cores(), threads_of_rank(), bfloat16(), memory(), shared_memory(), huge_pages(), locked_memory()};
}

}  // namespace ronda::apps
