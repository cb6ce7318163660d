#pragma once
#include <filesystem>
#include <vector>

namespace ronda {

/// Notes that this process reads data from a file, or from all files of a folder: no output of the program may then
/// overwrite it (see require_apart). Ronda's datasets note their files; a dataset of your own calls this when it opens
/// one. Thread-safe. A file that does not exist is not noted.
void note_data_file(const std::filesystem::path& path);

/// All noted files and folders, as absolute paths.
[[nodiscard]] std::vector<std::filesystem::path> data_files();

}  // namespace ronda
