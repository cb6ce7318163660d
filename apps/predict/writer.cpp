#include "writer.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>

#include <nlohmann/json.hpp>

#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>

namespace ronda::apps {
namespace {

using Json = nlohmann::ordered_json;

double rounded(double number) { return read_number(shortest(static_cast<float>(number)).c_str()); }

/// A field of CSV, as RFC 4180 has it.
std::string field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

PredictionWriter::PredictionWriter(const SavedModel& model, PredictionFormat format, std::size_t top, std::ostream& out)
    : model_(model), format_(format), top_(std::min(top, model.classes.size())), out_(out) {
  if (format_ != PredictionFormat::csv) return;
  out_ << "file,sample";
  if (model_.classes.empty()) out_ << "," << field(std::get<TableInput>(model_.input).target);
  for (std::size_t i = 1; i <= top_; ++i) {
    const std::string behind = i == 1 ? "" : "_" + std::to_string(i);
    out_ << ",label" << behind << ",class" << behind << ",probability" << behind;
  }
  out_ << "\n";
}

void PredictionWriter::write(const std::string& file, std::size_t sample, std::span<const float> outputs) {
  if (!std::ranges::all_of(outputs, [](float x) { return std::isfinite(x); }))
    throw InputError(file + ", sample " + std::to_string(sample) + ": what the model gives is not finite; is " +
                     model_.source.string() + " of a training that failed?");
  if (model_.classes.empty())
    write_number(file, sample, std::get<TableInput>(model_.input).units.of(outputs[0]));
  else
    write_classes(file, sample, likeliest(outputs));
}

/// By softmax. Of equal ones the smaller label comes first.
std::vector<PredictionWriter::Choice> PredictionWriter::likeliest(std::span<const float> outputs) const {
  const double largest = *std::ranges::max_element(outputs);
  double sum = 0;
  std::vector<Choice> choices;
  for (std::size_t label = 0; label < outputs.size(); ++label) {
    choices.push_back({label, std::exp(outputs[label] - largest)});
    sum += choices.back().probability;
  }
  std::ranges::stable_sort(choices, std::ranges::greater(), &Choice::probability);
  choices.resize(top_);
  for (Choice& choice : choices) choice.probability /= sum;
  return choices;
}

void PredictionWriter::write_classes(const std::string& file, std::size_t sample, const std::vector<Choice>& choices) {
  if (format_ == PredictionFormat::csv) {
    out_ << field(file) << "," << sample;
    for (const auto& [label, probability] : choices)
      out_ << "," << label << "," << field(model_.classes[label]) << "," << shortest(static_cast<float>(probability));
    out_ << "\n";
    return;
  }
  const auto object = [&](const Choice& choice) {
    return Json{
        {"label", choice.label}, {"class", model_.classes[choice.label]}, {"probability", rounded(choice.probability)}};
  };
  Json line = {{"file", file}, {"sample", sample}};
  line.update(object(choices.front()));
  if (choices.size() > 1)
    for (const Choice& choice : choices) line["top"].push_back(object(choice));
  out_ << line.dump(-1, ' ', false, Json::error_handler_t::replace) << "\n";  // names of files may be no text
}

void PredictionWriter::write_number(const std::string& file, std::size_t sample, double number) {
  if (format_ == PredictionFormat::csv) {
    out_ << field(file) << "," << sample << "," << shortest(number) << "\n";
    return;
  }
  const Json line = {{"file", file},
                     {"sample", sample},
                     {"target", std::get<TableInput>(model_.input).target},
                     {"prediction", number}};
  out_ << line.dump(-1, ' ', false, Json::error_handler_t::replace) << "\n";
}

}  // namespace ronda::apps
