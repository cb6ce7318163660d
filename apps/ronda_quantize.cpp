// A model that an application has saved, with int8 weights: smaller, and faster to compute. Needs no MPI.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>

#include <CLI/CLI.hpp>

#include <ronda/core/error.hpp>
#include <ronda/core/function_ref.hpp>
#include <ronda/core/text.hpp>
#include <ronda/data/dataset_part.hpp>
#include <ronda/runtime/trainer/predictor.hpp>
#include <ronda/runtime/trainer/quantization.hpp>
#include <ronda/runtime/trainer/version.hpp>

#include "model_card.hpp"
#include "predict/inputs.hpp"
#include "progress.hpp"
#include "saved_model.hpp"
#include "tool.hpp"

namespace {

using namespace ronda;

namespace fs = std::filesystem;

struct Options {
  fs::path model, output;
  std::vector<fs::path> data;
  std::size_t samples = 1000;
  double least_agreement = 0.9;
  std::string description;
  PredictorOptions predictor = apps::default_predictor();
};

/// False where help was asked for.
bool parse(Options& options, int argc, char** argv) {
  CLI::App app("Makes the weights of a saved model's dense layers and convolutions int8, and says what that changes.",
               "ronda_quantize");
  app.option_defaults()->always_capture_default();
  app.set_version_flag("--version", "ronda_quantize (Ronda) " + version());
  apps::add_model(app, options.model);
  app.add_option("OUTPUT", options.output, "The file to write, safetensors, for ronda_predict")->required();
  app.add_option("--data", options.data,
                 "Samples of the training data, in files that ronda_predict takes: they tell the range of what each "
                 "operation is given")
      ->required();
  app.add_option("--samples", options.samples, "Of these at most so many are computed, evenly spread")
      ->check(CLI::Range(1, 1 << 30));
  app.add_option("--least-agreement", options.least_agreement,
                 "Share of samples whose class stays; of a model of numbers: R2 of its outputs; below it nothing is "
                 "written")
      ->check(CLI::Range(0.0, 1.0));
  apps::add_predictor(app, options.predictor);
  apps::add_description(app, options.description);
  return apps::parse(app, argc, argv);
}

/// Some samples of files, evenly spread.
class ChosenSamples {
 public:
  ChosenSamples(const apps::Inputs& inputs, std::size_t most) {
    std::size_t all = 0;
    for (std::size_t part = 0; part < inputs.parts(); ++part) {
      opened_.push_back(inputs.open(part));
      all += opened_.back().data().size();
    }
    count_ = std::min(all, most);
    std::size_t next = 0, first = 0;
    for (const apps::Samples& samples : opened_) {
      std::vector<std::uint64_t> chosen;
      const std::size_t end = first + samples.data().size();
      for (; next < count_ && place(next, all) < end; ++next) chosen.push_back(place(next, all) - first);
      if (!chosen.empty()) parts_.push_back(std::make_unique<DatasetPart>(samples.data(), std::move(chosen)));
      first = end;
    }
    for (const auto& part : parts_) data_.push_back(part.get());
  }
  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  [[nodiscard]] std::span<const Dataset* const> data() const noexcept { return data_; }

 private:
  [[nodiscard]] std::size_t place(std::size_t i, std::size_t all) const {
    return i * (all / count_) + i * (all % count_) / count_;
  }

  std::vector<apps::Samples> opened_;
  std::vector<std::unique_ptr<const Dataset>> parts_;
  std::vector<const Dataset*> data_;
  std::size_t count_ = 0;
};

/// The float32 model and that of int8, each with its outputs for the same samples.
class Comparison {
 public:
  Comparison(const apps::SavedModel& model, std::span<const NamedTensor> quantized, const ChosenSamples& samples,
             PredictorOptions options)
      : samples_(samples),
        batch_size_(options.batch_size),
        field_(model.input_field()),
        source_(model.source.string()),
        exact_(model.model, std::span(&field_, 1), options) {
    exact_.load(model.tensors, model.source);
    options.rewrite = int8_rewrite(int8_weights(quantized));
    int8_.emplace(model.model, std::span(&field_, 1), options);
    int8_->load(quantized, model.source);
  }

  /// Throws InputError where they are not finite.
  void compute_outputs() {
    before_ = outputs(exact_);
    after_ = outputs(*int8_);
    for (const std::vector<float>* all : {&before_, &after_})
      if (!std::ranges::all_of(*all, [](float x) { return std::isfinite(x); }))
        throw InputError(source_ + ": what the model gives for these samples is not finite" +
                         (all == &after_ ? ", with int8 weights" : "; is it of a training that failed?"));
  }

  /// Classes: the share of rows with the same likeliest class. Numbers: R² of the int8 outputs. 1 is full agreement.
  [[nodiscard]] double agreement(std::size_t classes) const {
    return classes > 0 ? static_cast<double>(same_classes(classes)) * static_cast<double>(classes) /
                             static_cast<double>(before_.size())
                       : r2();
  }

  /// Classes: the number of rows with the same likeliest class. Numbers: the largest difference.
  void print_outputs(std::size_t classes, float unit) const {
    if (classes > 0) {
      std::cout << "same class as float32: " << same_classes(classes) << " of " << before_.size() / classes << "\n";
      return;
    }
    float most = 0;
    for (std::size_t i = 0; i < before_.size(); ++i) most = std::max(most, std::abs(before_[i] - after_[i]));
    std::cout << "predictions differ by at most " << most * unit << "\n";
  }

  /// The best of a second of rounds, in turns; of one round where that takes longer.
  void print_speed() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    double exact = 0, int8 = 0;
    while (exact == 0 || std::chrono::steady_clock::now() < end) {
      exact = std::max(exact, samples_a_second(exact_));
      int8 = std::max(int8, samples_a_second(*int8_));
    }
    std::cout << std::fixed << std::setprecision(0) << "samples a second: float32 " << exact << ", int8 " << int8
              << std::setprecision(2) << " (" << int8 / exact << ")\n";
  }

 private:
  [[nodiscard]] std::size_t same_classes(std::size_t classes) const {
    std::size_t same = 0;
    const auto likeliest = [&](const std::vector<float>& all, std::size_t row) {
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(row);
      return std::max_element(begin, begin + static_cast<std::ptrdiff_t>(classes)) - begin;
    };
    for (std::size_t row = 0; row < before_.size(); row += classes)
      same += likeliest(before_, row) == likeliest(after_, row) ? 1 : 0;
    return same;
  }
  /// 1 if the float32 outputs are all equal: they have no spread to compare errors with.
  [[nodiscard]] double r2() const {
    double mean = 0, spread = 0, error = 0;
    for (const float x : before_) mean += x / static_cast<double>(before_.size());
    for (std::size_t i = 0; i < before_.size(); ++i) {
      spread += (before_[i] - mean) * (before_[i] - mean);
      error += (double{before_[i]} - after_[i]) * (double{before_[i]} - after_[i]);
    }
    return spread > 0 ? 1 - error / spread : 1;
  }

  std::vector<float> outputs(Predictor& predictor) {
    std::vector<float> all;
    compute(predictor, [&](std::span<const float> some) { all.insert(all.end(), some.begin(), some.end()); });
    return all;
  }
  double samples_a_second(Predictor& predictor) {
    const auto begin = std::chrono::steady_clock::now();
    compute(predictor, [](std::span<const float>) {});
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    return static_cast<double>(samples_.count()) / seconds.count();
  }

  void compute(Predictor& predictor, FunctionRef<void(std::span<const float>)> take) {
    apps::Progress progress("ronda_quantize", "samples, to compare both models");
    std::size_t before = 0;
    for (const Dataset* data : samples_.data()) {
      std::size_t done = 0;
      predictor.predict(*data, [&](std::span<const float> some) {
        take(some);
        done = std::min(done + batch_size_, data->size());
        progress.at(before + done, samples_.count());
      });
      before += data->size();
    }
  }

  const ChosenSamples& samples_;
  std::size_t batch_size_;
  Field field_;
  std::string source_;
  Predictor exact_;
  std::optional<Predictor> int8_;
  std::vector<float> before_, after_;  ///< outputs of both
};

std::uint64_t bytes_of(std::span<const NamedTensor> tensors) {
  std::uint64_t bytes = 0;
  for (const NamedTensor& tensor : tensors)
    bytes += static_cast<std::uint64_t>(tensor.shape.count()) * size_of(tensor.dtype());
  return bytes;
}

void print_tensors(std::span<const NamedTensor> tensors) {
  std::size_t widest = 6;
  for (const NamedTensor& tensor : tensors) widest = std::max(widest, tensor.name.size());
  const auto line = [&](const std::string& name, const std::string& shape, std::string_view type, const auto& bytes) {
    std::cout << std::left << std::setw(static_cast<int>(widest)) << name << "  " << std::setw(18) << shape << "  "
              << std::setw(7) << type << std::right << "  " << std::setw(12) << bytes << "\n";
  };
  line("tensor", "shape", "type", "bytes");
  for (const NamedTensor& tensor : tensors)
    line(tensor.name, tensor.shape.text(), name_of(tensor.dtype()), bytes_of({&tensor, 1}));
}

int run(int argc, char** argv) {
  Options options;
  if (!parse(options, argc, argv)) return 0;
  const apps::SavedModel model = apps::read_saved_model(options.model, options.description);
  std::vector<fs::path> read = options.data;
  read.push_back(model.source);
  apps::require_output({"OUTPUT", options.output}, read);
  const apps::Inputs inputs(model, options.data);
  const ChosenSamples samples(inputs, options.samples);
  std::vector<NamedTensor> quantized;
  {
    apps::Progress progress("ronda_quantize", "samples");
    quantized = quantize(model.model, model.tensors, model.source, samples.data(), options.predictor,
                         [&](std::size_t done) { progress.at(done, samples.count()); });
  }
  Comparison comparison(model, quantized, samples, options.predictor);
  comparison.compute_outputs();
  if (const double agreement = comparison.agreement(model.classes.size()); agreement < options.least_agreement)
    throw Error("with int8 weights the outputs for these samples agree to " + formatted("%.1f %%", 100 * agreement) +
                " with those of float32, less than " + formatted("%.1f %%", 100 * options.least_agreement) +
                ": nothing is written; give --data of more kinds, keep the model in float32, or set --least-agreement "
                "lower");
  write_safetensors(options.output, quantized, {{"format", "pt"}, {apps::model_card_key, model.card}});

  print_tensors(quantized);
  const std::uint64_t before = bytes_of(model.tensors), after = bytes_of(quantized);
  std::cout << "bytes of all tensors: float32 " << before << ", int8 " << after << " (1/" << std::fixed
            << std::setprecision(2) << static_cast<double>(before) / static_cast<double>(after) << ")\n"
            << std::defaultfloat << std::setprecision(6);
  const auto* table = std::get_if<apps::TableInput>(&model.input);
  comparison.print_outputs(model.classes.size(), table != nullptr ? static_cast<float>(table->units.factor) : 1);
  comparison.print_speed();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return apps::run_alone([&] { return run(argc, argv); });
}
