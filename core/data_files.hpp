#pragma once
#include <filesystem>
#include <vector>

namespace ronda {

/// Notes that this process reads data from a file, or from all files of a folder. The program's outputs are then kept
/// away from it (see require_apart). Ronda's datasets note their files; a dataset of your own does it where it opens
/// one. From any thread. A file that does not exist is not noted.
void note_data_file(const std::filesystem::path& path);

/// All that were noted, as absolute paths.
[[nodiscard]] std::vector<std::filesystem::path> data_files();

}  // namespace ronda
