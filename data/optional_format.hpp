#pragma once
#include <string>
#include <vector>

namespace ronda {

/// A format of data whose library a build may lack.
struct OptionalFormat {
  std::string name;     ///< `JPEG`
  std::string library;  ///< with its version; empty: this build lacks it
  std::string package;  ///< of Debian and Ubuntu, to build with it
};

/// All that there are.
[[nodiscard]] std::vector<OptionalFormat> optional_formats();

}  // namespace ronda
