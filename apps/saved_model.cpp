#include "saved_model.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <iostream>
#include <map>
#include <string_view>
#include <utility>

#include <CLI/CLI.hpp>

#include <ronda/core/cores.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/core/text.hpp>
#include <ronda/runtime/checkpoint/checkpoint_folder.hpp>
#include <ronda/runtime/checkpoint/model_in.hpp>
#include <ronda/runtime/io/whole_file.hpp>

#include "model_card.hpp"
#include "models.hpp"
#include "tool.hpp"

namespace ronda::apps {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t most_columns = 1 << 24;

/// Takes values out of a card. Whatever is missing or of another type is an InputError.
class CardReader {
 public:
  CardReader(const ModelCard& card, const fs::path& source) : card_(card), source_(source) {}

  template <class T>
  [[nodiscard]] T get(const char* key) const {
    if (!card_.contains(key)) throw bad(std::string("it lacks \"") + key + "\"");
    try {
      return card_[key].get<T>();
    } catch (const ModelCard::exception&) {
      throw bad(std::string("\"") + key + "\" is " + excerpt(card_[key].dump()));
    }
  }
  template <class T>
  [[nodiscard]] T get(const char* key, T otherwise) const {
    return card_.contains(key) ? get<T>(key) : otherwise;
  }
  [[nodiscard]] std::int64_t size(const char* key, std::int64_t most = most_columns) const {
    return checked(key, get<ModelCard>(key), most);
  }
  [[nodiscard]] std::int64_t size_or(const char* key, std::int64_t otherwise, std::int64_t most) const {
    return card_.contains(key) ? size(key, most) : otherwise;
  }
  [[nodiscard]] std::vector<std::int64_t> sizes(const char* key, std::vector<std::int64_t> otherwise) const {
    if (!card_.contains(key)) return otherwise;
    std::vector<std::int64_t> all;
    for (const ModelCard& each : get<std::vector<ModelCard>>(key)) all.push_back(checked(key, each, most_columns));
    return all;
  }
  /// Names of classes, or how many there are, whose names are then their numbers.
  [[nodiscard]] std::vector<std::string> classes() const {
    if (!card_.contains("classes") || !card_["classes"].is_array()) return numbers(size("classes"));
    auto names = get<std::vector<std::string>>("classes");
    if (names.empty()) throw bad("\"classes\" names none");
    return names;
  }
  /// The same of a model that has so many outputs, whatever its card says; by number where that says nothing.
  [[nodiscard]] std::vector<std::string> classes_of(std::int64_t outputs) const {
    if (!card_.contains("classes")) return numbers(outputs);
    std::vector<std::string> names = classes();
    if (static_cast<std::int64_t>(names.size()) != outputs)
      throw bad("\"classes\" are " + std::to_string(outputs) + ", not " + std::to_string(names.size()));
    return names;
  }
  [[nodiscard]] InputError bad(const std::string& what) const {
    return InputError(source_.string() + ": what it says of its model cannot be used: " + what +
                      "; --describe JSON says it in its place");
  }

 private:
  static std::vector<std::string> numbers(std::int64_t count) {
    std::vector<std::string> names;
    for (std::int64_t label = 0; label < count; ++label) names.push_back(std::to_string(label));
    return names;
  }
  [[nodiscard]] std::int64_t checked(const char* key, const ModelCard& size, std::int64_t most) const {
    const bool whole = size.is_number_integer();
    if (!whole || size < 1 || size > most)
      throw bad(std::string("\"") + key + "\" is " + (whole ? "" : "a whole number ") + "from 1 to " +
                std::to_string(most) + ", not " +
                excerpt(size.dump(-1, ' ', false, ModelCard::error_handler_t::replace)));
    return size.get<std::int64_t>();
  }

  const ModelCard& card_;
  const fs::path& source_;
};

void digits(SavedModel& saved, const CardReader& card, Sequential model) {
  const std::int64_t size = card.size_or("size", 28, 4096);
  saved.input = PictureInput{.size = size, .resize = size, .channels = 1};
  saved.model = std::move(model);
  saved.classes = card.classes_of(10);
}

void small_pictures(SavedModel& saved, const CardReader& card, Sequential model) {
  saved.input = PictureInput{.size = 32, .resize = 32, .normalized = cifar10_pixels()};
  saved.model = std::move(model);
  saved.classes = card.classes_of(10);
}

void large_pictures(SavedModel& saved, const CardReader& card) {
  const std::int64_t size = card.size_or("size", 224, 4096);
  if (size < 32) throw card.bad("\"size\" is from 32 to 4096, not " + std::to_string(size));
  saved.input = PictureInput{.size = size, .resize = size * 8 / 7, .normalized = imagenet_pixels()};
  saved.classes = card.classes();
  saved.model = ResNet(false).large50(static_cast<std::int64_t>(saved.classes.size()));
}

void table(SavedModel& saved, const CardReader& card) {
  const auto separator = card.get<std::string>("separator", ",");
  TableInput input{.columns = card.get<std::vector<std::string>>("inputs"),
                   .means = card.get<std::vector<double>>("means"),
                   .deviations = card.get<std::vector<double>>("deviations"),
                   .target = card.get<std::string>("target"),
                   .units = {card.get<double>("target_deviation"), card.get<double>("target_mean")},
                   .separator = separator.size() == 1 ? separator[0] : ','};
  if (input.columns.empty() || input.means.size() != input.columns.size() ||
      input.deviations.size() != input.columns.size())
    throw card.bad("\"inputs\", \"means\" and \"deviations\" are lists of one length");
  if (std::ranges::any_of(input.deviations, [](double deviation) { return !(deviation > 0); }))
    throw card.bad("\"deviations\" are above 0");
  saved.model = perceptron(card.sizes("hidden", {64, 64}), 1);
  saved.input = std::move(input);
}

void text(SavedModel& saved, const CardReader& card) {
  const auto tokens = static_cast<std::int32_t>(card.size("tokens", 1 << 30));
  if (tokens < 2) throw card.bad("\"tokens\" are at least 2");
  saved.input = TextInput{tokens, card.size("words", 1 << 20)};
  saved.classes = card.classes();
  saved.model = bag_of_words(tokens, card.size("width"), static_cast<std::int64_t>(saved.classes.size()));
}

/// The character, or, where it is none of ASCII that is seen, its number: `0x0a`.
std::string name_of_byte(int byte) {
  if (byte >= ' ' && byte <= '~') return {static_cast<char>(byte)};
  const std::string_view digits = "0123456789abcdef";
  return std::string("0x") + digits[static_cast<std::size_t>(byte) / 16] + digits[static_cast<std::size_t>(byte) % 16];
}

void bytes(SavedModel& saved, const CardReader& card) {
  const GptOptions options{.layers = card.size("layers", 1 << 10),
                           .heads = card.size("heads", 1 << 10),
                           .width = card.size("width", 1 << 16),
                           .context = card.size("context", 1 << 20)};
  if (options.width % options.heads != 0) throw card.bad("\"width\" is no multiple of \"heads\"");
  saved.input = BytesInput{options.context};
  for (int byte = 0; byte < 256; ++byte) saved.classes.push_back(name_of_byte(byte));
  saved.model = gpt(options);
}

using Make = std::function<void(SavedModel&, const CardReader&)>;

const std::map<std::string, Make, std::less<>>& applications() {
  static const std::map<std::string, Make, std::less<>> all{
      {"mnist_softmax", [](auto& saved, auto& card) { digits(saved, card, flat_perceptron({}, 10)); }},
      {"mnist_mlp",
       [](auto& saved, auto& card) { digits(saved, card, flat_perceptron(card.sizes("hidden", {128}), 10)); }},
      {"mnist_cnn", [](auto& saved, auto& card) { digits(saved, card, small_cnn()); }},
      {"mnist_resnet", [](auto& saved, auto& card) { digits(saved, card, residual_network()); }},
      {"cifar10_cnn", [](auto& saved, auto& card) { small_pictures(saved, card, small_cnn()); }},
      {"cifar10_resnet", [](auto& saved, auto& card) { small_pictures(saved, card, ResNet(false).small18(10)); }},
      {"imagenet_resnet50", large_pictures},
      {"tabular", table},
      {"text_classifier", text},
      {"char_gpt", bytes}};
  return all;
}

/// Parameters and metadata of a file, or of a checkpoint.
Safetensors read_source(fs::path& source) {
  std::error_code ignored;
  if (!fs::is_directory(source, ignored)) return read_safetensors(source);
  if (!is_there(manifest_of(source))) {
    const auto newest = newest_whole(source, [](const CheckpointPlace&, const Error& error) {
      std::cerr << std::string("ronda: warning: passing over: ") + error.what() + "\n";
    });
    if (!newest) throw InputError(source.string() + " has no whole checkpoint");
    source = newest->path;
  }
  const CheckpointManifest manifest = verify_checkpoint(source);
  return {model_in(source, manifest, false), manifest.metadata};
}

ModelCard parsed(const std::string& text, const std::string& what) {
  ModelCard card = ModelCard::parse(text, nullptr, false);
  if (card.is_discarded() || !card.is_object()) throw InputError(what + " is no object of JSON: " + excerpt(text));
  return card;
}

/// A key that no model has is one that is written wrongly.
ModelCard checked_keys(ModelCard description) {
  static constexpr auto known = std::to_array<std::string_view>(
      {"application", "classes", "hidden", "size", "inputs", "means", "deviations", "target", "target_mean",
       "target_deviation", "separator", "tokens", "words", "width", "layers", "heads", "context"});
  for (const auto& [key, value] : description.items())
    if (std::ranges::find(known, key) == known.end())
      throw InputError("--describe: no model has \"" + excerpt(key) + "\"; known are " +
                       listed(known, [](std::string_view each) { return std::string(each); }));
  return description;
}

ModelCard card_of(const std::map<std::string, std::string>& metadata, const fs::path& source,
                  const std::string& description) {
  ModelCard card = ModelCard::object();
  if (const auto found = metadata.find(model_card_key); found != metadata.end())
    card = parsed(found->second, source.string() + ": what it says of its model");
  if (!description.empty()) card.update(checked_keys(parsed(description, "--describe")));
  if (!card.contains("application"))
    throw InputError(source.string() +
                     " does not say which application's model it is: an earlier Ronda or another program wrote it; "
                     "save it anew, or describe it: --describe '{\"application\": \"mnist_mlp\", \"hidden\": [128]}'");
  return card;
}

}  // namespace

Field SavedModel::input_field() const {
  if (const auto* pictures = std::get_if<PictureInput>(&input))
    return {"input", Shape{pictures->size, pictures->size, pictures->channels}};
  if (const auto* table = std::get_if<TableInput>(&input))
    return {"input", Shape{static_cast<std::int64_t>(table->columns.size())}};
  if (const auto* text = std::get_if<TextInput>(&input)) return {"input", Shape{text->words}, DType::int32};
  return {"input", Shape{std::get<BytesInput>(input).context}, DType::int32};
}

SavedModel read_saved_model(const fs::path& source, const std::string& description) {
  SavedModel saved;
  saved.source = source;
  Safetensors content = read_source(saved.source);
  const ModelCard card = card_of(content.metadata, saved.source, description);
  const CardReader reader(card, saved.source);
  saved.application = reader.get<std::string>("application");
  const auto make = applications().find(saved.application);
  if (make == applications().end())
    throw InputError(saved.source.string() + " has a model of '" + excerpt(saved.application) +
                     "'; known are those of " + listed(applications(), [](const auto& each) { return each.first; }));
  make->second(saved, reader);
  saved.tensors = std::move(content.tensors);
  saved.card = card.dump(-1, ' ', false, ModelCard::error_handler_t::replace);
  return saved;
}

void add_model(CLI::App& app, std::filesystem::path& model) {
  app.add_option("MODEL", model, "File of --save; a checkpoint, DIR/step-N; or a folder: its newest whole checkpoint")
      ->required();
}

void add_description(CLI::App& app, std::string& description) {
  app.add_option("--describe", description,
                 "Description that MODEL lacks, as JSON: {\"application\": \"mnist_mlp\", \"hidden\": [128]}")
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
