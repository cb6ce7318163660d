#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace ronda {

/// The pictures in a folder with a subfolder a class: see ImageFolder.
struct PictureList {
  struct Entry {
    std::string file;  ///< below the folder
    std::int32_t label;
  };

  /// Throws InputError where the folder cannot be read or has no classes, and where a class has no pictures.
  explicit PictureList(const std::filesystem::path& folder);

  /// `not read are 4 .bmp, 4 .webp in pictures`; empty: none.
  [[nodiscard]] std::string passed_over_text() const;

  std::filesystem::path folder;
  std::vector<std::string> classes;
  std::vector<Entry> entries;
  std::map<std::string, std::size_t> passed_over;  ///< number of pictures in formats that are not read, by ending

 private:
  void add_class(std::size_t label, const std::set<std::pair<dev_t, ino_t>>& elsewhere);
};

}  // namespace ronda
