// What a saved model says of pictures, rows of a table or lines of text. Needs no MPI.
#include <iostream>

#include <CLI/CLI.hpp>

#include <ronda/core/names.hpp>
#include <ronda/runtime/trainer/predictor.hpp>
#include <ronda/runtime/trainer/quantization.hpp>
#include <ronda/runtime/trainer/version.hpp>

#include "predict/inputs.hpp"
#include "predict/writer.hpp"
#include "saved_model.hpp"
#include "tool.hpp"

namespace {

using namespace ronda;

constexpr EnumNames<apps::PredictionFormat, 2> formats{
    {{apps::PredictionFormat::json, "json"}, {apps::PredictionFormat::csv, "csv"}}};

struct Options {
  std::filesystem::path model;
  std::vector<std::filesystem::path> files;
  std::string description;
  apps::PredictionFormat format = apps::PredictionFormat::json;
  std::size_t top = 1;
  PredictorOptions predictor = apps::default_predictor();
};

/// False where help was asked for.
bool parse(Options& options, int argc, char** argv) {
  CLI::App app("What a model that an application has saved says of files. One line a sample, on standard output.",
               "ronda_predict");
  app.option_defaults()->always_capture_default();
  app.set_version_flag("--version", "ronda_predict (Ronda) " + version());
  apps::add_model(app, options.model);
  app.add_option(
         "FILES", options.files,
         "Pictures (JPEG, PNG, PGM, PPM), IDX files of images or CIFAR-10's .bin; CSV with a line of names, for "
         "tabular; texts, a line a sample, for text_classifier and char_gpt. -: text or a table from standard input")
      ->required();
  app.add_option_function<std::string>(
         "--format", [&](const std::string& name) { options.format = parse_name(formats, name, "a --format"); },
         "json: an object a line; csv")
      ->default_str("json");
  app.add_option("--top", options.top, "Classes that are named, the likeliest first")->check(CLI::Range(1, 1 << 24));
  apps::add_predictor(app, options.predictor);
  apps::add_description(app, options.description);
  return apps::parse(app, argc, argv);
}

int run(int argc, char** argv) {
  Options options;
  if (!parse(options, argc, argv)) return 0;
  const apps::SavedModel model = apps::read_saved_model(options.model, options.description);
  const Field input = model.input_field();
  require_scales(model.tensors, model.source);
  options.predictor.rewrite = int8_rewrite(int8_weights(model.tensors));
  Predictor predictor(model.model, std::span(&input, 1), options.predictor);
  predictor.load(model.tensors, model.source);
  const apps::Inputs inputs(model, options.files);
  apps::PredictionWriter writer(model, options.format, options.top, std::cout);
  const auto outputs_of_one = static_cast<std::size_t>(predictor.output_shape().count());
  for (std::size_t part = 0; part < inputs.parts(); ++part) {
    const apps::Samples samples = inputs.open(part);
    std::size_t sample = 0;
    predictor.predict(samples.data(), [&](std::span<const float> outputs) {
      for (; !outputs.empty(); outputs = outputs.subspan(outputs_of_one), ++sample)
        writer.write(inputs.file(part, sample), inputs.number(part, sample),
                     samples.row(sample, outputs.first(outputs_of_one), model.classes.size()));
    });
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return apps::run_alone([&] { return run(argc, argv); });
}
