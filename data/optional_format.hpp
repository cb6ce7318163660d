#pragma once
#include <string>
#include <vector>

namespace ronda {

/// A data format that needs an optional library.
struct OptionalFormat {
  std::string name;     ///< `JPEG`
  std::string library;  ///< name and version; empty: this build lacks it
  std::string package;  ///< Debian and Ubuntu package to build with
};

/// All optional formats.
[[nodiscard]] std::vector<OptionalFormat> optional_formats();

}  // namespace ronda
