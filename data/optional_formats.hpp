#pragma once
#include <string>
#include <vector>

#include <ronda/core/error.hpp>

namespace ronda {

/// A data format that needs an optional library.
struct OptionalFormat {
  std::string name;     ///< `JPEG`
  std::string library;  ///< name and version; empty: this build lacks it
  std::string package;  ///< Debian and Ubuntu package to build with
};

/// All optional formats.
[[nodiscard]] std::vector<OptionalFormat> optional_formats();

// Each is defined beside the format's reader, or in no_NAME.cpp.
[[nodiscard]] OptionalFormat hdf5_format();
[[nodiscard]] OptionalFormat jpeg_format();
[[nodiscard]] OptionalFormat png_format();

/// To throw where a build lacks what a file needs.
[[nodiscard]] inline InputError lacking(const OptionalFormat& format) {
  return InputError("this build of Ronda lacks " + format.name + "; install " + format.package +
                    ", and configure and build it anew");
}

}  // namespace ronda
