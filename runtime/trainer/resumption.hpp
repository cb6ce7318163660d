#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/event_sink.hpp>
#include <ronda/data/dataset.hpp>
#include <ronda/runtime/io/checkpoint_manifest.hpp>
#include <ronda/runtime/trainer/training_options.hpp>

namespace ronda {

/// The checkpoint that a training resumes from.
struct Resumption {
  std::filesystem::path folder;
  CheckpointManifest manifest;  ///< the same on all ranks
};

/// Finds the checkpoint that the options request: rank 0 reads every byte of it and broadcasts the manifest. Nullopt if
/// the training starts anew. Collective. Throws InputError, agreed, if
/// - `resume_from` is damaged;
/// - no checkpoint is complete (unless TrainingOptions::resume_or_restart);
/// - a new training would mix its checkpoints with those of another;
/// - a checkpoint is from another version.
[[nodiscard]] std::optional<Resumption> find_checkpoint(const Communicator& communicator,
                                                        const TrainingOptions& options, EventSink& sink);

/// A description of the data: `60000 samples, input (28, 28, 1), target (), sampled contents 123`. The words before the
/// number at the end are the kind of fingerprint; fingerprints of different kinds cannot be compared.
[[nodiscard]] std::string text_of(const Dataset& data);

/// The options that determine the course of a training, apart from rounding: values as text, by the options' names.
/// @param options  as completed by Trainer
[[nodiscard]] std::map<std::string, std::string> options_that_matter(const TrainingOptions& options,
                                                                     std::uint64_t total_steps, const Dataset& train);

/// Throws InputError, with both values of each option, if the training differs from the checkpoint's in an option that
/// `options.allow_changes` does not name, or if `allow_changes` names an unknown option. A checkpoint of an earlier
/// Ronda may have another kind of fingerprint: then that part of the data's description is not compared, and a note
/// reports it.
void check_changes(const Resumption& resumption, const std::map<std::string, std::string>& mine,
                   const TrainingOptions& options, EventSink& sink);

/// Returns all reasons why the resumed training will not have the bits of an uninterrupted one, such as another number
/// of ranks than the checkpoint's; empty if the bits will be equal.
[[nodiscard]] std::string why_not_exact(const CheckpointManifest& manifest, const Communicator& communicator,
                                        const std::map<std::string, std::string>& environment,
                                        const std::vector<std::string>& plan);

}  // namespace ronda
