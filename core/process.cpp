#include <ronda/core/error.hpp>
#include <ronda/core/process.hpp>
#include <ronda/core/text.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string_view>

namespace ronda {

double seconds_since_process_start() {
  std::ifstream stat_file("/proc/self/stat"), uptime_file("/proc/uptime");
  std::string stat{std::istreambuf_iterator<char>(stat_file), {}};
  double uptime = 0, ticks = 0;
  const auto name_end = stat.rfind(')');  // the second field may hold blanks
  if (!(uptime_file >> uptime) || name_end == std::string::npos) return 0;
  TextReader fields(stat.substr(name_end + 1));
  std::string skipped;
  for (int field = 3; field < 22; ++field) fields >> skipped;  // proc(5): starttime is field 22
  if (!(fields >> ticks)) return 0;
  return uptime - ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

std::string random_token() {
  std::uint64_t bits = 0;
  if (::getentropy(&bits, sizeof bits) != 0) throw ResourceError("the system gives no random bits");
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(bits));
  return text.data();
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  return processor_name(file);
}

std::string processor_name(std::istream& cpuinfo) {
  std::map<std::string, std::string> first;  // what is said of the first processor
  for (std::string line; std::getline(cpuinfo, line) && !line.empty();) {
    const auto colon = line.find(':');
    if (colon == std::string::npos || colon + 2 > line.size()) continue;
    const auto end = line.find_last_not_of(" \t", colon - 1);
    first.emplace(line.substr(0, end + 1), line.substr(colon + 2));
  }
  if (const auto name = first.find("model name"); name != first.end()) return name->second;
  std::string numbers;  // Arm's have no name of their own
  for (const char* key : {"CPU implementer", "CPU part", "CPU variant"})
    if (const auto found = first.find(key); found != first.end())
      numbers += (numbers.empty() ? "" : ", ") + found->first + " " + found->second;
  return numbers.empty() ? "unknown" : numbers;
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

bool is_launcher(int process) {
  static constexpr std::array<std::string_view, 9> names{"mpirun",         "mpiexec",       "orterun",
                                                         "prterun",        "orted",         "prted",
                                                         "mpirun.openmpi", "mpiexec.hydra", "hydra_pmi_proxy"};
  std::ifstream file("/proc/" + std::to_string(process) + "/comm");
  std::string name;
  std::getline(file, name);
  return std::ranges::find(names, name) != names.end();
}

int parent_of(int process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("PPid:")) return std::atoi(line.c_str() + 5);
  return 0;
}

int children_of(int process) {
  int count = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc", error), end; !error && entry != end; entry.increment(error)) {
    const int one = std::atoi(entry->path().filename().c_str());
    if (one > 0 && parent_of(one) == process) ++count;
  }
  return count;
}

}  // namespace ronda
