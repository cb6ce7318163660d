#pragma once
#include <filesystem>
#include <string>

#include <ronda/runtime/trainer/predictor.hpp>

namespace CLI {
class App;
}

/// The options that tools for saved models share: MODEL and --describe, which read_saved_model takes, and what a
/// Predictor does.
namespace ronda::apps {

void add_model(CLI::App& app, std::filesystem::path& model);
void add_description(CLI::App& app, std::string& description);

/// --batch-size and --threads.
void add_predictor(CLI::App& app, PredictorOptions& options);
/// On all cores.
[[nodiscard]] PredictorOptions default_predictor();

}  // namespace ronda::apps
