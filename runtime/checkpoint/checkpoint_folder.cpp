#include <ronda/runtime/checkpoint/checkpoint_folder.hpp>
#include <ronda/runtime/io/whole_file.hpp>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>

namespace ronda {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view prefix = "step-";

std::optional<std::uint64_t> step_of(const std::string& name) {
  std::uint64_t step = 0;
  if (!name.starts_with(prefix)) return std::nullopt;
  const char *begin = name.data() + prefix.size(), *end = name.data() + name.size();
  const auto parsed = std::from_chars(begin, end, step);
  const bool whole =
      parsed.ec == std::errc() && parsed.ptr == end && name == std::string(prefix) + std::to_string(step);
  return whole ? std::optional(step) : std::nullopt;
}

void rename_path(const fs::path& from, const fs::path& to, Storage& storage) {
  if (const std::error_code error = storage.rename(from, to))
    throw ResourceError("cannot rename " + from.string() + " to " + to.string() + ": " + error.message());
}

/// Whether Ronda has written this, in any version. Another folder of such a name is the user's.
bool is_ours(const fs::path& checkpoint, Storage& storage) {
  try {
    static_cast<void>(read_manifest(manifest_of(checkpoint), storage));
    return true;
  } catch (const ManifestVersionError&) {
    return true;
  } catch (const InputError&) {
    return false;
  }
}

/// Out of the list, under a name that no run looks for, which is returned.
fs::path set_aside(const fs::path& checkpoint, Storage& storage) {
  fs::path name = checkpoint.string() + ".aside";
  for (int i = 2; fs::exists(fs::symlink_status(name)); ++i) name = checkpoint.string() + ".aside" + std::to_string(i);
  rename_path(checkpoint, name, storage);
  return name;
}

/// Gone from sight at once, then from the disk.
void remove_checkpoint(const fs::path& checkpoint, Storage& storage) {
  const fs::path hidden = checkpoint.parent_path() / ("." + checkpoint.filename().string() + ".removed");
  static_cast<void>(storage.remove(hidden));
  if (!storage.rename(checkpoint, hidden)) static_cast<void>(storage.remove(hidden));
}

void check_part(const CheckpointPart& part, const fs::path& checkpoint) {
  const fs::path path = checkpoint / part.file;
  if (fs::path(part.file).filename() != part.file)
    throw InputError(manifest_of(checkpoint).string() + ": '" + part.file + "' is no name of a file");
  const auto damaged = [&](const std::string& found) {
    return InputError(path.string() + " is damaged: expected " + std::to_string(part.sum.bytes) + " bytes with hash " +
                      part.sum.hash + ", found " + found);
  };
  std::error_code unknown;
  const std::uintmax_t bytes = fs::file_size(path, unknown);
  if (!unknown && bytes != part.sum.bytes) throw damaged(std::to_string(bytes) + " bytes");
  const FileSum found = sum_of(path);
  if (found != part.sum) throw damaged(std::to_string(found.bytes) + " with " + found.hash);
}

bool is_audited(const CheckpointPlace& place, Storage& storage) {
  try {
    return read_manifest(manifest_of(place.path), storage).audited;
  } catch (const InputError&) {
    return false;
  }
}

}  // namespace

fs::path manifest_of(const fs::path& checkpoint) { return checkpoint / "manifest.json"; }

fs::path checkpoint_path(const fs::path& directory, std::uint64_t step) {
  return directory / (std::string(prefix) + std::to_string(step));
}

std::vector<CheckpointPlace> list_checkpoints(const fs::path& directory, Storage& storage) {
  std::vector<CheckpointPlace> places;
  std::error_code error;
  if (!is_there(directory)) return places;
  for (const fs::path& path : storage.list(directory, error))
    if (const auto step = step_of(path.filename().string())) places.push_back({*step, path});
  if (error) throw InputError("cannot read the folder " + directory.string() + ": " + error.message());
  std::ranges::sort(places, {}, &CheckpointPlace::step);
  return places;
}

CheckpointManifest verify_checkpoint(const fs::path& checkpoint, Storage& storage) {
  CheckpointManifest manifest = read_manifest(manifest_of(checkpoint), storage);
  // A copy may have another name; one that is named as a checkpoint has to be that one.
  if (const auto named = step_of(checkpoint.filename().string()); named && *named != manifest.step)
    throw InputError(checkpoint.string() + " holds step " + std::to_string(manifest.step));
  if (manifest.parts.size() != static_cast<std::size_t>(manifest.ranks))
    throw InputError(manifest_of(checkpoint).string() + ": " + std::to_string(manifest.ranks) + " ranks, but " +
                     std::to_string(manifest.parts.size()) + " parts");
  for (const auto& part : manifest.parts) check_part(part, checkpoint);
  return manifest;
}

std::optional<CheckpointPlace> newest_whole(
    const fs::path& directory, const std::function<void(const CheckpointPlace&, const Error&)>& passed_over,
    Storage& storage) {
  auto places = list_checkpoints(directory, storage);
  for (; !places.empty(); places.pop_back()) {
    try {
      verify_checkpoint(places.back().path, storage);
      return places.back();
    } catch (const ManifestVersionError&) {
      throw;
    } catch (const Error& error) {
      passed_over(places.back(), error);
    }
  }
  return std::nullopt;
}

double reading_limit(const fs::path& folder) {
  constexpr double patience = 300, bytes_a_second = 10e6;
  double bytes = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (std::error_code gone; entry->is_regular_file(gone))
      if (const auto size = entry->file_size(gone); !gone) bytes += static_cast<double>(size);
  return patience + bytes / bytes_a_second;
}

void publish_checkpoint(const fs::path& partial, std::uint64_t step, Storage& storage) {
  const fs::path directory = partial.parent_path(), place = checkpoint_path(directory, step);
  storage.synchronise(partial);
  if (fs::exists(fs::symlink_status(place)) && !is_ours(place, storage)) set_aside(place, storage);
  if (fs::exists(fs::symlink_status(place))) {
    // A damaged one, or one of a training that went on from before it: the two change places at once.
    if (!storage.exchange(partial, place)) {
      static_cast<void>(storage.remove(partial));
      return storage.synchronise(directory);
    }
    remove_checkpoint(place, storage);  // a file system that cannot
  }
  rename_path(partial, place, storage);
  storage.synchronise(directory);
}

void keep_newest(const fs::path& directory, std::uint64_t step, std::size_t keep, Storage& storage) {
  std::vector<CheckpointPlace> places;
  try {
    places = list_checkpoints(directory, storage);
  } catch (const InputError&) {  // then they stay: too many are better than none
  }
  std::erase_if(places,
                [&](const CheckpointPlace& place) { return place.step > step || !is_ours(place.path, storage); });
  const auto newest_audited = std::find_if(places.rbegin(), places.rend(),
                                           [&](const CheckpointPlace& place) { return is_audited(place, storage); });
  for (std::size_t i = 0; i + keep < places.size(); ++i)
    if (newest_audited == places.rend() || newest_audited->step != places[i].step)
      remove_checkpoint(places[i].path, storage);
}

std::optional<fs::path> remove_oldest(const fs::path& directory, Storage& storage) {
  const auto newest = newest_whole(
      directory, [](const CheckpointPlace&, const Error&) {}, storage);
  if (!newest) return std::nullopt;
  const auto places = list_checkpoints(directory, storage);
  const auto newest_audited = std::find_if(places.rbegin(), places.rend(),
                                           [&](const CheckpointPlace& place) { return is_audited(place, storage); });
  for (const CheckpointPlace& place : places) {
    if (!is_ours(place.path, storage) || place.step == newest->step ||
        (newest_audited != places.rend() && newest_audited->step == place.step))
      continue;
    remove_checkpoint(place.path, storage);
    return place.path;
  }
  return std::nullopt;
}

void remove_leftovers(const fs::path& directory, Storage& storage) {
  std::error_code ignored;
  for (const fs::path& path : storage.list(directory, ignored)) {
    const std::string name = path.filename().string();
    const bool of_checkpoint =
        name.starts_with("." + std::string(prefix)) && (name.ends_with(".partial") || name.ends_with(".removed"));
    if (of_checkpoint || name.starts_with(".token-")) static_cast<void>(storage.remove(path));
  }
}

std::vector<fs::path> set_aside_after(const fs::path& directory, std::uint64_t step, Storage& storage) {
  std::vector<fs::path> aside;
  for (const auto& place : list_checkpoints(directory, storage))
    if (place.step > step) aside.push_back(set_aside(place.path, storage));
  return aside;
}

std::vector<fs::path> set_all_aside(const fs::path& directory, Storage& storage) {
  std::vector<fs::path> aside;
  for (const auto& place : list_checkpoints(directory, storage)) aside.push_back(set_aside(place.path, storage));
  return aside;
}

}  // namespace ronda
