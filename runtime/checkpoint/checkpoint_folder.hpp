#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <ronda/runtime/io/checkpoint_manifest.hpp>
#include <ronda/runtime/io/storage.hpp>

namespace ronda {

/// Location of a checkpoint: `DIR/step-N`, a folder with a manifest and one file per rank. It is written as
/// `DIR/.step-N.TOKEN.partial` and renamed when all files are on disk, so readers see a complete checkpoint or none.
struct CheckpointPlace {
  std::uint64_t step = 0;
  std::filesystem::path path;
};

/// Names of a checkpoint's files.
[[nodiscard]] std::filesystem::path manifest_of(const std::filesystem::path& checkpoint);
[[nodiscard]] std::filesystem::path checkpoint_path(const std::filesystem::path& directory, std::uint64_t step);

/// Lists the checkpoints in `directory` by ascending step, without checking their files. Empty if the directory does
/// not exist. Throws InputError if it cannot be read.
[[nodiscard]] std::vector<CheckpointPlace> list_checkpoints(const std::filesystem::path& directory,
                                                            Storage& storage = file_system());

/// Reads every byte of the checkpoint and returns its manifest. Throws an InputError that names the first file that is
/// missing, damaged or unexpected; ManifestVersionError.
CheckpointManifest verify_checkpoint(const std::filesystem::path& checkpoint, Storage& storage = file_system());

/// Finds the newest complete checkpoint. Calls `passed_over` for each newer one that is incomplete. Throws
/// ManifestVersionError if one is from another version: skipping it would silently lose work.
[[nodiscard]] std::optional<CheckpointPlace> newest_whole(
    const std::filesystem::path& directory,
    const std::function<void(const CheckpointPlace&, const Error&)>& passed_over, Storage& storage = file_system());

/// Upper limit in seconds for reading all files below `folder`, generous for a slow disk.
[[nodiscard]] double reading_limit(const std::filesystem::path& folder);

/// Atomically renames `partial` to `step-N` in its folder. Replaces a checkpoint of that name; sets a folder without a
/// readable manifest aside instead. The rename is on disk on return. Throws ResourceError.
void publish_checkpoint(const std::filesystem::path& partial, std::uint64_t step, Storage& storage = file_system());

/// Removes the oldest checkpoints up to `step` until `keep` are left, except the newest audited one and folders without
/// a readable manifest. Readers never see a partly removed checkpoint.
void keep_newest(const std::filesystem::path& directory, std::uint64_t step, std::size_t keep,
                 Storage& storage = file_system());

/// Removes the oldest checkpoint to free space, except the newest complete one and the newest audited one. Returns its
/// path; nullopt if none may be removed. Reads every byte of the newest complete one. Throws ManifestVersionError.
[[nodiscard]] std::optional<std::filesystem::path> remove_oldest(const std::filesystem::path& directory,
                                                                 Storage& storage = file_system());

/// Removes partly written and partly removed checkpoints of earlier runs.
void remove_leftovers(const std::filesystem::path& directory, Storage& storage = file_system());

/// Renames checkpoints after `step` so that no run finds them, because a training that resumed from an older one does
/// not use them. Returns their new paths. Throws ResourceError.
std::vector<std::filesystem::path> set_aside_after(const std::filesystem::path& directory, std::uint64_t step,
                                                   Storage& storage = file_system());

/// Renames all checkpoints in this way, for a training that starts anew because none is complete.
std::vector<std::filesystem::path> set_all_aside(const std::filesystem::path& directory,
                                                 Storage& storage = file_system());

}  // namespace ronda
