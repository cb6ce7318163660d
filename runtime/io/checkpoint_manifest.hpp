#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/core/event_sink.hpp>
#include <ronda/runtime/io/whole_file.hpp>
#include <ronda/runtime/io/storage.hpp>

namespace ronda {

/// One rank's file of a checkpoint.
struct CheckpointPart {
  std::string file;  ///< name in the checkpoint's folder
  FileSum sum;
  std::vector<std::string> tensors;   ///< tensors that are equal on all ranks; each is in one part
  std::vector<std::string> per_rank;  ///< tensors that differ per rank

  bool operator==(const CheckpointPart&) const = default;
};

/// Everything in a checkpoint except its tensors: `manifest.json` in its folder. JSON; the last key is a hash of all
/// text before it:
///
///     {"format": "ronda-checkpoint", "version": 1, …, "parts": […], "hash": "…"}
struct CheckpointManifest {
  static constexpr int version = 1;  ///< readers refuse other versions; keys may be added within a version

  std::string application, ronda;              ///< the program that wrote it, and the library's version
  std::uint64_t step = 0;                      ///< steps done, over all epochs
  std::uint64_t epoch = 1;                     ///< the current epoch, from 1
  std::uint64_t step_in_epoch = 0;             ///< steps done in that epoch
  std::vector<std::uint64_t> skipped_batches;  ///< skipped batches of that epoch, before its last used batch
  std::uint64_t updates = 0;                   ///< steps that changed the parameters
  std::uint64_t samples = 0;                   ///< samples of all steps, over all ranks
  double train_seconds = 0;                    ///< time of all steps
  double last_loss = 0;                        ///< loss of the last step with samples that count; NaN: no such step
  bool audited = false;                        ///< all replicas were verified to be equal at this step
  std::map<std::string, std::vector<std::int64_t>> counters;  ///< integer states, the same on all ranks
  std::vector<std::string> averaged;                          ///< names of states with Scope::averaged
  int ranks = 1, hosts = 1;                                   ///< ranks and hosts that wrote it
  std::map<std::string, std::string> options;                 ///< options that the training depends on, by name
  std::map<std::string, std::string> environment;             ///< environment that the plan was made for
  std::map<std::string, std::string, std::less<>> picks;      ///< algorithms chosen by timing
  std::vector<std::string> plan;                              ///< resulting plan, one line per element
  EpochReport current;                               ///< report of the current epoch; train_* are sums, not means
  double weight = 0;                                 ///< sum of the samples' weights in these sums
  std::vector<EpochReport> history;                  ///< reports of the completed epochs
  std::vector<CheckpointPart> parts;                 ///< one per rank
  std::map<std::string, std::vector<double>> hooks;  ///< data that hooks need to resume, by hook; all finite
  Metric metric;                                     ///< metric in the epochs' reports
  std::map<std::string, std::string> metadata;       ///< description of the model, from the program
};

/// The manifest is intact, but has another version.
class ManifestVersionError : public InputError {
 public:
  using InputError::InputError;
};

/// Throws InputError if the file is missing, damaged or not a manifest; ManifestVersionError.
[[nodiscard]] CheckpointManifest read_manifest(const std::filesystem::path& path, Storage& storage = file_system());
/// Parses the result of `manifest_text`; `path` is for error messages. Throws the same errors.
[[nodiscard]] CheckpointManifest parse_manifest(const std::string& text, const std::filesystem::path& path);
[[nodiscard]] std::string manifest_text(const CheckpointManifest& manifest);
/// Writes the complete file or nothing. Throws InputError if it cannot be created, ResourceError if it cannot be
/// written.
void write_manifest(const std::filesystem::path& path, const CheckpointManifest& manifest,
                    Storage& storage = file_system());

/// The same for the description of a part, which each rank stores next to its part until the manifest is written.
[[nodiscard]] CheckpointPart read_part(const std::filesystem::path& path, Storage& storage = file_system());
void write_part(const std::filesystem::path& path, const CheckpointPart& part, Storage& storage = file_system());

/// A summary for users and scripts: the manifest without its plan, as JSON, with the path of the checkpoint.
[[nodiscard]] std::string manifest_summary(const CheckpointManifest& manifest, const std::filesystem::path& folder);

}  // namespace ronda
