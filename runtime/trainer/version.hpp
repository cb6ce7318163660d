#pragma once
#include <string>

namespace ronda {

/// The library's version, `major.minor.patch`, from the file VERSION.
[[nodiscard]] std::string version();

}  // namespace ronda
