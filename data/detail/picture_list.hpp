#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace ronda {

/// The pictures in a folder with a subfolder a class: see ImageFolder.
struct PictureList {
  struct Entry {
    std::string file;  ///< below the folder
    std::int32_t label;
  };

  /// Throws InputError where the folder cannot be read or has no classes, and where a class has no pictures.
  explicit PictureList(const std::filesystem::path& folder);

  std::filesystem::path folder;
  std::vector<std::string> classes;
  std::vector<Entry> entries;
};

}  // namespace ronda
