// A model that an application has saved, for other programs: an ONNX file. Needs no MPI.

#include <CLI/CLI.hpp>

#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>
#include <ronda/runtime/onnx/write_onnx.hpp>
#include <ronda/runtime/trainer/quantization.hpp>
#include <ronda/runtime/trainer/version.hpp>

#include "model_card.hpp"
#include "saved_model.hpp"
#include "tool.hpp"

namespace {

using namespace ronda;

struct Options {
  std::filesystem::path model, onnx;
  std::string description;
};

/// False where help was asked for.
bool parse(Options& options, int argc, char** argv) {
  CLI::App app("Writes a model that an application has saved as a file that other programs run.", "ronda_export");
  app.set_version_flag("--version", "ronda_export (Ronda) " + version());
  apps::add_model(app, options.model);
  app.add_option("--onnx", options.onnx, "The file to write, ONNX of opset 17")->required();
  apps::add_description(app, options.description);
  return apps::parse(app, argc, argv);
}

std::string listed_numbers(const std::vector<float>& numbers) {
  TextWriter text;
  for (const float number : numbers) text << (text.tellp() == 0 ? "" : ", ") << number;
  return "(" + text.str() + ")";
}

std::string text_of(const apps::PictureInput& input) {
  std::string text = input.channels == 1 ? "pixels from 0 to 1, white on black" : "red, green and blue from 0 to 1";
  if (input.normalized)
    text += ", less " + listed_numbers(input.normalized->means) + ", divided by " +
            listed_numbers(input.normalized->deviations);
  return text;
}
std::string text_of(const apps::TableInput&) {
  return "numbers of the columns, less their means, divided by their deviations: ronda.model names them";
}
std::string text_of(const apps::TextInput& input) {
  return "the first " + std::to_string(input.words) + " words as tokens from 0 to " + std::to_string(input.tokens - 1) +
         ", then padding";
}
std::string text_of(const apps::BytesInput&) { return "bytes, 0 to 255"; }

std::string text_of_output(const apps::SavedModel& model) {
  if (std::holds_alternative<apps::TableInput>(model.input))
    return "times target_deviation, plus target_mean: the target in its units; ronda.model has both";
  return std::string("logits of ") +
         (std::holds_alternative<apps::BytesInput>(model.input) ? "the byte behind each" : "the classes");
}

OnnxOptions options_of(const apps::SavedModel& model) {
  OnnxOptions options{.name = model.application};
  options.metadata = {{"ronda.application", model.application}, {"ronda.model", model.card}};
  if (!model.classes.empty() && !std::holds_alternative<apps::BytesInput>(model.input))
    options.metadata["classes"] =
        apps::ModelCard(model.classes).dump(-1, ' ', false, apps::ModelCard::error_handler_t::replace);
  options.value_texts = {{"input", std::visit([](const auto& input) { return text_of(input); }, model.input)},
                         {"output", text_of_output(model)}};
  return options;
}

int run(int argc, char** argv) {
  Options options;
  if (!parse(options, argc, argv)) return 0;
  const apps::SavedModel model = apps::read_saved_model(options.model, options.description);
  apps::require_output({"--onnx", options.onnx}, {model.source});
  if (!int8_weights(model.tensors).empty())
    throw InputError(model.source.string() + " is quantised to int8: export the model that it was made of");
  const Field input = model.input_field();
  write_onnx(options.onnx, build_graph(model.model, {&input, 1}, 1), model.tensors, model.source, options_of(model));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return apps::run_alone([&] { return run(argc, argv); });
}
