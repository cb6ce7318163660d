#include <ronda/core/process.hpp>
#include <ronda/runtime/io/terminal.hpp>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

namespace ronda {
namespace {

namespace fs = std::filesystem;

/// A terminal that calls itself dumb, or nothing at all, prints escape codes as they are.
bool understands_escapes() {
  const char* kind = std::getenv("TERM");
  return kind != nullptr && *kind != '\0' && kind != std::string_view("dumb");
}

int width_of(int descriptor) {
  if (::isatty(descriptor) == 0) return 0;
  winsize size{};
  return ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

/// The outermost launcher above us, as its folder in /proc; empty where we were not started by one.
fs::path launcher() {
  fs::path found;
  for (int process = ::getppid(); process > 1 && is_launcher(process); process = parent_of(process))
    found = "/proc/" + std::to_string(process);
  return found;
}

}  // namespace

int terminal_width(int descriptor) {
  if (!understands_escapes()) return 0;
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
