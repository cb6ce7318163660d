#pragma once
#include <functional>

#include <ronda/layers/composition.hpp>

#include "training_application.hpp"

namespace ronda::apps {

/// The main of an application that trains a model on CIFAR-10, or on files in its format: --data, --augment,
/// --label-smoothing, and all that every training application has. Returns the exit status.
/// @param augment  the default of --augment
int train_on_cifar10(CommandLine& command_line, int argc, char** argv, bool augment,
                     const std::function<Sequential()>& make_model);

}  // namespace ronda::apps
