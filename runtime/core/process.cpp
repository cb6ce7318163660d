#include <ronda/runtime/core/process.hpp>

#include <unistd.h>

#include <fstream>
#include <sstream>

namespace ronda {

double seconds_since_process_start() {
  std::ifstream stat_file("/proc/self/stat"), uptime_file("/proc/uptime");
  std::string stat{std::istreambuf_iterator<char>(stat_file), {}};
  double uptime = 0, ticks = 0;
  const auto name_end = stat.rfind(')');  // the second field may hold blanks
  if (!(uptime_file >> uptime) || name_end == std::string::npos) return 0;
  std::istringstream fields(stat.substr(name_end + 1));
  std::string skipped;
  for (int field = 3; field < 22; ++field) fields >> skipped;  // proc(5): starttime is field 22
  if (!(fields >> ticks)) return 0;
  return uptime - ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(": ");
    if (colon != std::string::npos && line.starts_with("model name")) return line.substr(colon + 2);
  }
  return "unknown";
}

}  // namespace ronda
