#include <ronda/runtime/observe/terminal.hpp>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace ronda {
namespace {

namespace fs = std::filesystem;

int width_of(int descriptor) {
  if (::isatty(descriptor) == 0) return 0;
  winsize size{};
  return ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

bool is_launcher(std::string_view name) {
  static constexpr std::array<std::string_view, 8> names{
      "mpirun", "mpiexec", "orterun", "prterun", "mpiexec.hydra", "hydra_pmi_proxy", "prted", "mpirun.openmpi"};
  for (const auto each : names)
    if (each == name) return true;
  return false;
}

std::string first_line(const fs::path& file) {
  std::string line;
  std::ifstream stream(file);
  std::getline(stream, line);
  return line;
}

/// The parent of a process; 0 where that cannot be known.
int parent_of(const fs::path& process) {
  std::ifstream status(process / "status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("PPid:", 0) == 0) return std::atoi(line.c_str() + 5);
  return 0;
}

/// The outermost launcher above us, as its folder in /proc; empty where we were not started by one.
fs::path launcher() {
  fs::path found;
  for (int process = ::getppid(); process > 1;) {
    const fs::path folder = "/proc/" + std::to_string(process);
    if (!is_launcher(first_line(folder / "comm"))) break;
    found = folder;
    process = parent_of(folder);
  }
  return found;
}

}  // namespace

int terminal_width(int descriptor) {
  const fs::path above = launcher();
  if (above.empty()) return width_of(descriptor);
  std::error_code error;
  const fs::path target = fs::read_symlink(above / "fd" / std::to_string(descriptor), error);
  if (error || target.string().rfind("/dev/", 0) != 0) return 0;
  const int opened = ::open(target.c_str(), O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
  if (opened < 0) return 0;
  const int width = width_of(opened);
  ::close(opened);
  return width;
}

}  // namespace ronda
