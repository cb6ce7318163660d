#include "model_options.hpp"

#include <CLI/CLI.hpp>

#include <ronda/core/cores.hpp>
#include <ronda/core/parallel.hpp>

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
  app.add_option_function<int>(
         "--threads", [&](int asked) { options.threads = count_threads(asked, cores_of_process()).count; },
         "Threads that compute, at most those that OpenMP grants")
      ->check(CLI::Range(1, 1 << 12))
      ->default_str(std::to_string(options.threads));
}

PredictorOptions default_predictor() { return {.threads = count_threads(0, cores_of_process()).count}; }

}  // namespace ronda::apps
