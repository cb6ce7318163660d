#include <ronda/runtime/trainer/version.hpp>

namespace ronda {
std::string version() { return RONDA_VERSION; }
}  // namespace ronda
