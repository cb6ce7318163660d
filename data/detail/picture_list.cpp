#include <ronda/core/data_files.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/lower_case.hpp>
#include <ronda/core/printable.hpp>
#include <ronda/data/detail/picture_list.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace ronda {
namespace {

namespace fs = std::filesystem;

bool is_picture(const fs::path& path) {
  const std::string ending = lower_case(path.extension().string());
  return ending == ".jpg" || ending == ".jpeg" || ending == ".png";
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

/// Below `folder`, by their folder and name.
std::vector<std::string> pictures_of(const fs::path& folder) {
  std::vector<std::pair<std::string, std::string>> found;
  for (const auto& entry : fs::recursive_directory_iterator(folder, fs::directory_options::follow_directory_symlink))
    if (is_picture(entry.path()) && is_file_or_dangling(entry))
      found.emplace_back(entry.path().parent_path().string(), entry.path().filename().string());
  std::ranges::sort(found);
  std::vector<std::string> files;
  for (const auto& [parent, name] : found)
    files.push_back((fs::path(parent) / name).lexically_relative(folder).string());
  return files;
}

}  // namespace

PictureList::PictureList(const fs::path& folder_with_classes) : folder(folder_with_classes) {
  try {
    classes = subfolders_of(folder);
    note_data_file(folder);
    if (classes.empty()) throw InputError(folder.string() + ": expected a subfolder a class, found none");
    for (std::size_t label = 0; label < classes.size(); ++label) {
      const fs::path subfolder = folder / classes[label];
      const std::vector<std::string> files = pictures_of(subfolder);
      if (files.empty())
        throw InputError(printable(subfolder.string()) +
                         ": expected pictures, .jpg, .jpeg or .png, found none; remove the folder, or put some there");
      for (const std::string& file : files)
        entries.push_back({(fs::path(classes[label]) / file).string(), static_cast<std::int32_t>(label)});
    }
  } catch (const fs::filesystem_error& error) {
    throw InputError("cannot read the folder of pictures " + folder.string() + ": " + error.what());
  }
}

}  // namespace ronda
