#pragma once
#include <filesystem>

#include "source.hpp"

namespace ronda::apps {

/// Writes all samples of the data as arrays `input` and `target`, in their order: to an HDF5 file where `to` ends in
/// .h5 or .hdf5, otherwise to input.npy and target.npy in the folder `to`. Pixels are bytes, labels int32, all else
/// float32. Written beside, then renamed. Throws InputError where that cannot be created, or data is damaged;
/// ResourceError.
void write_arrays(const OpenData& data, const std::filesystem::path& to);

}  // namespace ronda::apps
