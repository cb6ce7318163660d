#pragma once
#include <functional>

#include <ronda/layers/sequential.hpp>

#include "command_line.hpp"

namespace ronda::apps {

/// The main of an application that trains a model on MNIST: options, data, console, trainer. Returns the exit status.
int train_on_mnist(CommandLine& command_line, int argc, char** argv, const std::function<Sequential()>& make_model);

}  // namespace ronda::apps
