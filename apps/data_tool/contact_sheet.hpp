#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include <ronda/data/dataset.hpp>

namespace ronda::apps {

/// Writes images of a dataset side by side to a PNG file, row by row, a black pixel between them. Values from 0 to 1
/// are from black to white; greys are shown as such.
/// @param request  which samples, and of which epoch and seed
/// @param columns  images in a row, at least 1
/// Throws InputError where samples are no images, the file cannot be created, and in a build without PNG.
void write_contact_sheet(const Dataset& data, const SampleRequest& request, std::size_t columns,
                         const std::filesystem::path& file);

}  // namespace ronda::apps
