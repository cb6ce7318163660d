#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <ronda/runtime/io/checkpoint_manifest.hpp>

namespace ronda {

/// A checkpoint's place: `DIR/step-N`, a folder with a manifest and a file a rank. It is written beside, as
/// `DIR/.step-N.TOKEN.partial`, and renamed when all of it is on disk; so whoever looks sees all of it or none.
struct CheckpointPlace {
  std::uint64_t step = 0;
  std::filesystem::path path;
};

/// Names of a checkpoint's files.
[[nodiscard]] std::filesystem::path manifest_of(const std::filesystem::path& checkpoint);
[[nodiscard]] std::filesystem::path checkpoint_path(const std::filesystem::path& directory, std::uint64_t step);

/// The checkpoints in `directory`, in ascending order of steps; whether they are sound is another question. None where
/// there is no such directory. Throws InputError where it cannot be read.
[[nodiscard]] std::vector<CheckpointPlace> list_checkpoints(const std::filesystem::path& directory);

/// Reads every byte of the checkpoint and returns its manifest. Throws InputError that names the first file that is
/// missing, damaged or does not belong there; ManifestVersionError.
CheckpointManifest verify_checkpoint(const std::filesystem::path& checkpoint);

/// The newest checkpoint that is whole. `passed_over` hears of each newer one that is not. Throws ManifestVersionError
/// where one is from another version: to pass over that would lose work in silence.
[[nodiscard]] std::optional<CheckpointPlace> newest_whole(
    const std::filesystem::path& directory,
    const std::function<void(const CheckpointPlace&, const Error&)>& passed_over);

/// Seconds that reading all files below `folder` may take, on a slow disk; generous.
[[nodiscard]] double reading_limit(const std::filesystem::path& folder);

/// Gives `partial` its name `step-N` in the folder that it lies in, at once. A checkpoint of that name goes; what has
/// no manifest that can be read is set aside. On disk when it returns. Throws ResourceError.
void publish_checkpoint(const std::filesystem::path& partial, std::uint64_t step);

/// Removes the oldest of the checkpoints up to `step` until `keep` are left; but the newest audited one stays, and so
/// do folders without a manifest that can be read. Nobody sees half of one.
void keep_newest(const std::filesystem::path& directory, std::uint64_t step, std::size_t keep);

/// Removes the oldest checkpoint, to make room, except the newest whole one and the newest audited one. Returns its
/// path; nullopt if none may be removed. Reads every byte of the newest whole one. Throws ManifestVersionError.
[[nodiscard]] std::optional<std::filesystem::path> remove_oldest(const std::filesystem::path& directory);

/// Removes what earlier runs left half-written or half-removed.
void remove_leftovers(const std::filesystem::path& directory);

/// Renames checkpoints after `step`, so that no run finds them: a training that resumed from an older one does not use
/// them. Returns their new paths. Throws ResourceError.
std::vector<std::filesystem::path> set_aside_after(const std::filesystem::path& directory, std::uint64_t step);

/// The same of all checkpoints: for a training that starts anew because none is whole.
std::vector<std::filesystem::path> set_all_aside(const std::filesystem::path& directory);

}  // namespace ronda
