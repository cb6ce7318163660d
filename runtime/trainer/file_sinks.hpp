#pragma once
#include <memory>
#include <vector>

#include <ronda/core/event_sink.hpp>
#include <ronda/runtime/trainer/training_options.hpp>

namespace ronda {

/// The files that the options ask for and that are written as training goes, opened. One that cannot be written later
/// is a warning, and gets nothing more. Not collective: rank 0's. Throws InputError where one cannot be created.
/// @param warned  outlives the files
[[nodiscard]] std::vector<std::unique_ptr<EventSink>> open_file_sinks(const TrainingOptions& options,
                                                                      EventSink& warned);

}  // namespace ronda
