#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <ronda/layers/composition.hpp>
#include <ronda/runtime/io/safetensors.hpp>
#include <ronda/runtime/trainer/predictor.hpp>
#include <ronda/runtime/trainer/training_options.hpp>

#include "transforms.hpp"

namespace CLI {
class App;
}

namespace ronda::apps {

/// What goes into a model, and how it is made of files.
struct PictureInput {
  std::int64_t size = 0, resize = 0;  ///< of the sides; the shorter one's, before the middle is taken
  std::int64_t channels = 3;
  std::optional<PixelScale> normalized = {};  ///< of pixels from 0 to 1; none: as they are
};
struct TableInput {
  std::vector<std::string> columns;
  std::vector<double> means, deviations;  ///< by column
  std::string target;
  DataUnits units;  ///< of the target
  char separator = ',';
};
struct TextInput {
  std::int32_t tokens = 0;
  std::int64_t words = 0;
};
struct BytesInput {
  std::int64_t context = 0;
};

/// A model that an application has saved.
struct SavedModel {
  std::filesystem::path source;
  std::string application;
  std::variant<PictureInput, TableInput, TextInput, BytesInput> input;
  Sequential model;
  std::vector<std::string> classes;  ///< names by label; empty: it gives numbers
  std::string card;                  ///< what it says of itself, JSON (see ModelCard)
  std::vector<NamedTensor> tensors;  ///< parameters, and what layers keep

  [[nodiscard]] Field input_field() const;
};

/// Reads a file of `--save`, or the newest whole checkpoint of a folder, or one checkpoint. Throws InputError where
/// that does not say which application's model it is, or not enough of it, with the remedy.
/// @param description  what it should say (see ModelCard), where it does not; empty: nothing
[[nodiscard]] SavedModel read_saved_model(const std::filesystem::path& source, const std::string& description = {});

// The options that tools for saved models share: MODEL and --describe, which read_saved_model takes, and those of a
// Predictor.

void add_model(CLI::App& app, std::filesystem::path& model);
void add_description(CLI::App& app, std::string& description);

/// --batch-size and --threads.
void add_predictor(CLI::App& app, PredictorOptions& options);
/// On all cores.
[[nodiscard]] PredictorOptions default_predictor();

}  // namespace ronda::apps
