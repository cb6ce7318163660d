#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include <ronda/data/dataset.hpp>

#include "source.hpp"

namespace ronda::apps {

/// Writes all samples of the data as arrays `input` and `target`, in their order: to an HDF5 file where `to` ends in
/// .h5 or .hdf5, otherwise to input.npy and target.npy in the folder `to`. Pixels are bytes, labels int32, all else
/// float32. Written beside, then renamed. Throws InputError where that cannot be created, or data is damaged;
/// ResourceError.
void write_arrays(const OpenData& data, const std::filesystem::path& to);

/// Writes images of a dataset side by side to a PNG file, row by row, a black pixel between them. Values from 0 to 1
/// are from black to white; greys are shown as such.
/// @param request  which samples, and of which epoch and seed
/// @param columns  images in a row, at least 1
/// Throws InputError where samples are no images, the file cannot be created, and in a build without PNG.
void write_contact_sheet(const Dataset& data, const SampleRequest& request, std::size_t columns,
                         const std::filesystem::path& file);

}  // namespace ronda::apps
