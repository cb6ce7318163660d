#include "model_options.hpp"

#include <algorithm>
#include <thread>

#include <CLI/CLI.hpp>

namespace ronda::apps {

void add_model(CLI::App& app, std::filesystem::path& model) {
  app.add_option("MODEL", model, "What --save wrote; a checkpoint, DIR/step-N; or a folder: its newest whole one")
      ->required();
}

void add_description(CLI::App& app, std::string& description) {
  app.add_option("--describe", description,
                 "What MODEL does not say of itself, as JSON: {\"application\": \"mnist_mlp\", \"hidden\": [128]}")
      ->default_str("");
}

void add_predictor(CLI::App& app, PredictorOptions& options) {
  app.add_option("--batch-size", options.batch_size, "Samples that are computed at once")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--threads", options.threads, "Cores to compute on")->check(CLI::Range(1, 1 << 12));
}

PredictorOptions default_predictor() {
  return {.threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()))};
}

}  // namespace ronda::apps
