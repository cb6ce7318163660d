#pragma once
#include "finding.hpp"

namespace ronda::apps {

/// Has a process of its own start MPI and train a small model for a moment, so that whatever ends it does not end this
/// one: can it train? Where every rank sees a GPU that this build can use it trains there too, the second finding.
/// Under mpirun every rank calls it, and the ranks' trials train together.
[[nodiscard]] Findings try_training();

/// Of the second.
inline constexpr const char* gpu_subject = "GPU training";

/// That process. Returns its exit status.
int train_a_little(int argc, char** argv);

/// The option that makes one.
inline constexpr const char* trial_option = "--try";

}  // namespace ronda::apps
