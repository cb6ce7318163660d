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

/// Rank 0 looks for the checkpoint that the options ask for, reads every byte of it, and broadcasts it. Nullopt if the
/// training starts anew. Collective. Throws InputError, agreed, if
/// - `resume_from` is damaged;
/// - no checkpoint is whole (unless TrainingOptions::resume_or_restart);
/// - a new training would be mixed up with checkpoints of another;
/// - a checkpoint is from another version.
[[nodiscard]] std::optional<Resumption> find_checkpoint(const Communicator& communicator,
                                                        const TrainingOptions& options, EventSink& sink);

/// A description of the data: `60000 samples, input (28, 28, 1), target (), sampled contents 123`. What stands before
/// the fingerprint is its kind; those of two kinds say nothing about each other.
[[nodiscard]] std::string text_of(const Dataset& data);

/// What the course of a training depends on, apart from roundings: values in words, by the options' names.
/// @param options  as Trainer has completed them
[[nodiscard]] std::map<std::string, std::string> options_that_matter(const TrainingOptions& options,
                                                                     std::uint64_t total_steps, const Dataset& train);

/// Throws InputError, with both values of each option, where the training differs from the checkpoint's in something
/// that `options.allow_changes` does not name, or where that names what there is not. A checkpoint of an earlier Ronda
/// may have a fingerprint of another kind: then that part of the data's description is not compared, which is said in a
/// note.
void check_changes(const Resumption& resumption, const std::map<std::string, std::string>& mine,
                   const TrainingOptions& options, EventSink& sink);

/// In which of these respects, all of them, a training does not have what the checkpoint was made with, so that its
/// bits will not be those of a training that was never interrupted; empty where they will.
[[nodiscard]] std::string why_not_exact(const CheckpointManifest& manifest, const Communicator& communicator,
                                        const std::map<std::string, std::string>& environment,
                                        const std::vector<std::string>& plan);

}  // namespace ronda
