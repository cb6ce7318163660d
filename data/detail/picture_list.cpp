#include <ronda/core/data_files.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>
#include <ronda/data/detail/picture_list.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

namespace ronda {
namespace {

namespace fs = std::filesystem;

bool is_read(const std::string& ending) { return ending == ".jpg" || ending == ".jpeg" || ending == ".png"; }

/// Whether files with this ending are pictures in a format that is not read.
bool is_passed_over(const std::string& ending) {
  constexpr std::array<std::string_view, 14> formats{".webp", ".bmp", ".tif", ".tiff", ".gif",  ".jfif", ".jpe",
                                                     ".jp2",  ".ppm", ".pgm", ".avif", ".heic", ".heif", ".jxl"};
  return std::ranges::count(formats, ending) > 0;
}

std::vector<std::string> subfolders_of(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

/// Also a link to what is not there: it is a sample that cannot be read, and who reads it is told so.
bool is_file_or_dangling(const fs::directory_entry& entry) {
  return entry.is_regular_file() || (entry.is_symlink() && !entry.exists());
}

/// Identifies a folder, independent of its path.
using FolderId = std::pair<dev_t, ino_t>;

FolderId id_of(const fs::path& folder) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0)
    throw fs::filesystem_error("stat", folder, std::error_code(errno, std::generic_category()));
  return {status.st_dev, status.st_ino};
}

/// Looks for the pictures of one class.
struct Search {
  std::set<FolderId> seen;  ///< folders that are not entered (again)
  std::map<std::string, std::size_t>& passed_over;
  std::vector<std::pair<std::string, std::string>> found = {};  ///< folder and name of each picture

  void in(const fs::path& folder) {
    std::vector<fs::directory_entry> entries{fs::directory_iterator(folder), fs::directory_iterator()};
    std::ranges::sort(entries);  // so that always the same of two links to a folder is followed
    for (const auto& entry : entries) {
      const std::string ending = lower_case(entry.path().extension().string());
      std::error_code dangling;
      if (entry.is_directory(dangling)) {
        if (seen.insert(id_of(entry.path())).second) in(entry.path());
      } else if (is_read(ending) && is_file_or_dangling(entry)) {
        found.emplace_back(entry.path().parent_path().string(), entry.path().filename().string());
      } else if (is_passed_over(ending) && is_file_or_dangling(entry)) {
        ++passed_over[ending];
      }
    }
  }
};

}  // namespace

PictureList::PictureList(const fs::path& folder_with_classes) : folder(folder_with_classes) {
  try {
    classes = subfolders_of(folder);
    note_data_file(folder);
    if (classes.empty()) throw InputError(folder.string() + ": expected a subfolder a class, found none");
    std::set<FolderId> seen{id_of(folder)};  // links to it, or to another class, are not followed
    for (const std::string& name : classes) seen.insert(id_of(folder / name));
    for (std::size_t label = 0; label < classes.size(); ++label) add_class(label, seen);
  } catch (const fs::filesystem_error& error) {
    throw InputError("cannot read the folder of pictures " + folder.string() + ": " + error.what());
  }
}

void PictureList::add_class(std::size_t label, const std::set<std::pair<dev_t, ino_t>>& elsewhere) {
  const fs::path subfolder = folder / classes[label];
  Search search{elsewhere, passed_over};
  search.in(subfolder);
  if (search.found.empty())
    throw InputError(printable(subfolder.string()) + ": expected pictures, .jpg, .jpeg or .png, found none" +
                     (passed_over.empty() ? "" : "; " + passed_over_text() + ": convert them") +
                     "; remove the folder, or put some there");
  std::ranges::sort(search.found);
  for (const auto& [parent, name] : search.found) {
    const std::string file = (fs::path(parent) / name).lexically_relative(folder).string();
    entries.push_back({file, static_cast<std::int32_t>(label)});
  }
}

std::string PictureList::passed_over_text() const {
  if (passed_over.empty()) return {};
  return "not read are " +
         listed(
             passed_over, [](const auto& each) { return std::to_string(each.second) + " " + each.first; }, ", ") +
         " in " + printable(folder.string());
}

}  // namespace ronda
