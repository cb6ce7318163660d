#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/collectives/world.hpp>
#include <ronda/data/dataset.hpp>
#include <ronda/layers/layer.hpp>
#include <ronda/layers/metrics.hpp>
#include <ronda/runtime/strategy/step/strategy.hpp>

#include "command_line.hpp"

namespace ronda::apps {

/// The folder share/NAME in the repository, or share/ronda/NAME where Ronda is installed, that is nearest above this
/// program; empty where there is none.
[[nodiscard]] std::filesystem::path find_shared(std::string_view name);

/// The two halves of an application that trains a model: one for whatever data and loss.

/// Reads the options, and runs `body` in the world. Returns the exit status.
int launch_with(CommandLine& command_line, int argc, char** argv, const std::function<int(World&)>& body);
/// Trains as the options say, with a console and, where checkpoints are taken, an ear for signals. Collective. Returns
/// the exit status.
/// @param test_data  may be empty
/// @param metrics    what tests measure beside the loss
/// @param describe   what else to print of the result; null: nothing
/// @param afterwards what else all ranks do with the trained model, behind that; null: nothing
int train(World& world, const CommandLine& command_line, const Layer& model, const Loss& loss,
          const Dataset& train_data, const Dataset& test_data,
          const std::vector<std::shared_ptr<const SummedMetric>>& metrics = {},
          const std::function<std::string(const Evaluation&)>& describe = {},
          const std::function<void(Strategy&)>& afterwards = {});

}  // namespace ronda::apps
