#pragma once
#include <memory>
#include <vector>

#include <ronda/core/event_sink.hpp>
#include <ronda/runtime/trainer/training_options.hpp>

namespace ronda {

/// Opens the files that the options ask for and that are written during the training. If one cannot be written later, a
/// warning is printed and the file gets no further lines. Not collective: for rank 0. Throws InputError if one cannot
/// be created.
/// @param warned  outlives the files
[[nodiscard]] std::vector<std::unique_ptr<EventSink>> open_file_sinks(const TrainingOptions& options,
                                                                      EventSink& warned);

}  // namespace ronda
