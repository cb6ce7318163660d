#pragma once
#include <filesystem>
#include <functional>

#include <ronda/layers/composition.hpp>

#include "training_application.hpp"

namespace ronda::apps {

/// The main of an application that trains a model on MNIST: --data, --label-smoothing, and all that every training
/// application has. Returns the exit status.
int train_on_mnist(CommandLine& command_line, int argc, char** argv, const std::function<Sequential()>& make_model);

/// The MNIST files beside the binary: `share/mnist` or `share/ronda/mnist` of a folder above it; empty where there are
/// none.
[[nodiscard]] std::filesystem::path find_mnist();

}  // namespace ronda::apps
