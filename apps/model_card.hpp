#pragma once
#include <nlohmann/json.hpp>

#include "command_line.hpp"

namespace ronda::apps {

/// What an application says of its model, so that ronda_predict can make it again: an object of JSON, such as
/// `{"application": "mnist_mlp", "hidden": [128]}`. Files of `--save` and checkpoints keep it in their metadata.
using ModelCard = nlohmann::ordered_json;
inline constexpr const char* model_card_key = "ronda.model";

/// Adds to the card of the training that is to begin.
void describe_model(CommandLine& command_line, const ModelCard& more);

}  // namespace ronda::apps
