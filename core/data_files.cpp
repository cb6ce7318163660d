#include <ronda/core/data_files.hpp>

#include <mutex>
#include <set>
#include <system_error>

namespace ronda {
namespace {

struct Noted {
  std::mutex mutex;
  std::set<std::filesystem::path> paths;
};

Noted& noted() {
  static Noted all;
  return all;
}

}  // namespace

void note_data_file(const std::filesystem::path& path) {
  std::error_code missing;
  std::filesystem::path place = std::filesystem::canonical(path, missing);
  if (missing) return;
  const std::lock_guard lock(noted().mutex);
  noted().paths.insert(std::move(place));
}

std::vector<std::filesystem::path> data_files() {
  const std::lock_guard lock(noted().mutex);
  return {noted().paths.begin(), noted().paths.end()};
}

}  // namespace ronda
