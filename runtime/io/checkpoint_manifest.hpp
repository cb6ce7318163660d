#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/core/event_sink.hpp>
#include <ronda/runtime/io/file_sum.hpp>

namespace ronda {

/// One rank's file of a checkpoint.
struct CheckpointPart {
  std::string file;  ///< its name, in the checkpoint's folder
  FileSum sum;
  std::vector<std::string> tensors;   ///< that all ranks have alike; each is in one part
  std::vector<std::string> per_rank;  ///< that are this rank's own

  bool operator==(const CheckpointPart&) const = default;
};

/// Everything of a checkpoint but its tensors: `manifest.json` in its folder. JSON, whose last key is a hash of all
/// before it:
///
///     {"format": "ronda-checkpoint", "version": 1, …, "parts": […], "hash": "…"}
struct CheckpointManifest {
  static constexpr int version = 1;  ///< a reader refuses others; keys may be added within a version

  std::string application, ronda;              ///< the program that wrote it, and the library's version
  std::uint64_t step = 0;                      ///< steps done, over all epochs
  std::uint64_t epoch = 1;                     ///< the current epoch, from 1
  std::uint64_t step_in_epoch = 0;             ///< steps done in it
  std::vector<std::uint64_t> skipped_batches;  ///< its batches that no step took, although a step took a later one
  std::uint64_t updates = 0;                   ///< steps that changed the parameters
  std::uint64_t samples = 0;                   ///< of all steps, over all ranks
  double train_seconds = 0;                    ///< of all steps
  double last_loss = 0;                        ///< of the last step with samples that count; NaN: none had any
  bool audited = false;                        ///< all replicas were verified to be equal at this step
  std::map<std::string, std::vector<std::int64_t>> counters;  ///< states that are whole numbers, the same on all ranks
  std::vector<std::string> averaged;  ///< states of which each rank has its own, and all take the mean to evaluate
  int ranks = 1, hosts = 1;           ///< that wrote it
  std::map<std::string, std::string> options;             ///< on which the training depends, by the options' names
  std::map<std::string, std::string> environment;         ///< what the plan was made for
  std::map<std::string, std::string, std::less<>> picks;  ///< what was chosen by timing
  std::vector<std::string> plan;                          ///< what came of it, a line each
  EpochReport current;                                    ///< the current epoch: sums, not means, in train_*
  double weight = 0;                                      ///< the samples' weights that these sums are over
  std::vector<EpochReport> history;                       ///< epochs that are over
  std::vector<CheckpointPart> parts;                      ///< by rank
  std::map<std::string, std::vector<double>> hooks;       ///< what hooks need to go on, by their names; finite
  Metric metric;                                          ///< that the epochs' reports hold
  std::map<std::string, std::string> metadata;            ///< what the program says of its model
};

/// A manifest that is whole, but of another version.
class ManifestVersionError : public InputError {
 public:
  using InputError::InputError;
};

/// Throws InputError where the file is missing, damaged or no manifest; ManifestVersionError.
[[nodiscard]] CheckpointManifest read_manifest(const std::filesystem::path& path);
/// The same from what `manifest_text` gave; `path` is for errors.
[[nodiscard]] CheckpointManifest parse_manifest(const std::string& text, const std::filesystem::path& path);
[[nodiscard]] std::string manifest_text(const CheckpointManifest& manifest);
/// Whole or not at all. Throws InputError where the file cannot be created, ResourceError where it cannot be written.
void write_manifest(const std::filesystem::path& path, const CheckpointManifest& manifest);

/// The same for what a rank leaves beside its part until the manifest is written.
[[nodiscard]] CheckpointPart read_part(const std::filesystem::path& path);
void write_part(const std::filesystem::path& path, const CheckpointPart& part);

/// For people and programs: the manifest without its plan, as JSON, with the checkpoint's place.
[[nodiscard]] std::string manifest_summary(const CheckpointManifest& manifest, const std::filesystem::path& folder);

}  // namespace ronda
