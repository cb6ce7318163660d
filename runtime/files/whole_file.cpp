#include <ronda/runtime/core/error.hpp>
#include <ronda/runtime/files/atomic_file.hpp>
#include <ronda/runtime/files/whole_file.hpp>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

namespace ronda {

bool is_there(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) return false;
  if (error) throw InputError("cannot look at " + path.string() + ": " + error.message());
  return true;
}

std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InputError("cannot open " + path.string() + ": " + std::strerror(errno));
  std::ostringstream text;
  text << file.rdbuf();
  if (file.bad() || text.fail()) throw InputError("cannot read " + path.string());
  return text.str();
}

void write_text(const std::filesystem::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

}  // namespace ronda
