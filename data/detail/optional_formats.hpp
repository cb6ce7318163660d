#pragma once
#include <ronda/core/error.hpp>
#include <ronda/data/optional_format.hpp>

namespace ronda {

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
