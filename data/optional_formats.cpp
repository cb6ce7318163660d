#include <ronda/data/optional_formats.hpp>

namespace ronda {

std::vector<OptionalFormat> optional_formats() { return {jpeg_format(), png_format(), hdf5_format()}; }

}  // namespace ronda
