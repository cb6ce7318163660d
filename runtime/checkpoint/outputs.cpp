#include <ronda/core/data_files.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>
#include <ronda/runtime/checkpoint/checkpoint_folder.hpp>
#include <ronda/runtime/checkpoint/outputs.hpp>

#include <algorithm>
#include <system_error>

namespace ronda {
namespace {

namespace fs = std::filesystem;

constexpr int most_links = 40;  // the system's limit

/// The absolute place that `path` leads to, through all links, even to a target that does not exist yet.
fs::path place_of(const fs::path& path) {
  std::error_code ignored;
  fs::path place = path;
  for (int links = 0; links < most_links && fs::is_symlink(place, ignored); ++links)
    place = place.parent_path() / fs::read_symlink(place, ignored);
  return fs::weakly_canonical(fs::absolute(place, ignored), ignored);
}

bool is_same(const fs::path& place, const fs::path& other) {
  std::error_code ignored;
  return place == other || fs::equivalent(place, other, ignored);
}

/// Whether `place` is `folder`, or lies in it at any depth.
bool is_within(fs::path place, const fs::path& folder) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) return false;
  for (; place.has_relative_path(); place = place.parent_path())
    if (is_same(place, folder)) return true;
  return false;
}

/// Whether the path is a pipe or a device: it takes any number of outputs, and nothing is overwritten.
bool is_special(const fs::path& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

Message text_of(const Output& output) {
  const std::string path = printable(output.path.string());
  const auto* field = std::get_if<Setting>(&output.name.parts().front());
  return field != nullptr ? setting(field->field, path) : output.name + " " + path;
}

[[noreturn]] void refuse(const Output& output, const std::string& what) {
  throw InputError(text_of(output) + what + ": give another path");
}

void require_no_input(const Output& output, const fs::path& place, const std::vector<fs::path>& inputs) {
  for (const fs::path& input : inputs) {
    if (input.empty() || is_special(input)) continue;
    const fs::path read = place_of(input);
    if (!is_same(place, read) && !is_within(place, read)) continue;
    if (output.may_replace.empty() || !is_same(place, place_of(output.may_replace)))
      refuse(output, " would overwrite an input: this program reads " + printable(input.string()));
  }
}

/// Whether Ronda uses this name in a folder of checkpoints: a checkpoint, the best model, or a file of a running save.
bool is_name_of_checkpoints(const std::string& name) {
  return name.starts_with("step-") || name.starts_with("best-step-") || name == ".lock" || name.starts_with(".step-") ||
         name.starts_with(".token-");
}

void require_no_checkpoint(const Output& output, const fs::path& place, const std::vector<Output>& all) {
  std::error_code ignored;
  const fs::path folder = place.parent_path();
  for (const fs::path& checkpoint : {place, folder})
    if (fs::exists(manifest_of(checkpoint), ignored))
      refuse(output, " would overwrite a part of the checkpoint " + printable(checkpoint.string()));
  if (!is_name_of_checkpoints(place.filename().string())) return;
  const bool saved_here = std::ranges::any_of(all, [&](const Output& other) {
    return other.folder && !other.path.empty() && is_same(folder, place_of(other.path));
  });
  if (saved_here || fs::exists(folder / ".lock", ignored))
    refuse(output, " has a name that is kept for the checkpoints in " + printable(folder.string()));
}

}  // namespace

void require_apart(const std::vector<Output>& outputs, const std::vector<fs::path>& inputs) {
  std::vector<fs::path> read = data_files();
  read.insert(read.end(), inputs.begin(), inputs.end());
  std::vector<std::pair<const Output*, fs::path>> places;
  for (const Output& output : outputs) {
    if (output.path.empty() || is_special(output.path)) continue;
    const fs::path place = place_of(output.path);
    require_no_input(output, place, read);
    require_no_checkpoint(output, place, outputs);
    for (const auto& [other, its_place] : places)
      if (is_same(place, its_place) && !(output.folder && other->folder))
        throw InputError(other->name + " and " + output.name + " are one file, " + printable(output.path.string()) +
                         ": give each its own");
    places.emplace_back(&output, place);
  }
}

}  // namespace ronda
