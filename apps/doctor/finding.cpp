#include "finding.hpp"

#include <fstream>

namespace ronda::apps {

std::string name_of(Finding::State state) {
  switch (state) {
    case Finding::State::fine: return "fine";
    case Finding::State::off: return "off";
    case Finding::State::missing: return "missing";
    case Finding::State::broken: break;
  }
  return "broken";
}

std::string first_line(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

}  // namespace ronda::apps
