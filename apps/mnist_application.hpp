#pragma once
#include <functional>

#include <ronda/collectives/world.hpp>
#include <ronda/data/dataset.hpp>
#include <ronda/layers/sequential.hpp>

#include "command_line.hpp"

namespace ronda::apps {

/// The main of an application that trains a model on MNIST: options, data, console, trainer. Returns the exit status.
int train_on_mnist(CommandLine& command_line, int argc, char** argv, const std::function<Sequential()>& make_model);

/// Its two halves, for programs with data or losses of their own. Reads the options, and runs `body` in the world.
int launch_with(CommandLine& command_line, int argc, char** argv, const std::function<int(World&)>& body);
/// Trains as the options say, with a console and, where checkpoints are taken, an ear for signals. Collective.
int train(World& world, const CommandLine& command_line, Layer& model, Loss& loss, const Dataset& train_data,
          const Dataset& test_data);

}  // namespace ronda::apps
