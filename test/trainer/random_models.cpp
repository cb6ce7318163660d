// Trains models described by files; scripts/check_pytorch_random.py compares them with PyTorch:
//   random_models FOLDER NAME…
// Reads FOLDER/NAME.json (layers, loss, optimizer) and FOLDER/NAME.safetensors (`input`, `target`), and begins with the
// parameters of FOLDER/NAME.init.safetensors. Writes FOLDER/NAME.found.json (the losses of all steps, or an error),
// NAME.saved.safetensors and NAME.outputs.safetensors.
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <ronda/ronda.hpp>
#include <ronda/runtime/io/safetensors.hpp>

using namespace ronda;
using nlohmann::json;

namespace {

std::shared_ptr<const Layer> layer_of(const json& described);

std::shared_ptr<const Layer> sequence_of(const json& layers) {
  const auto sequence = std::make_shared<Sequential>();
  for (const json& layer : layers) sequence->add(layer_of(layer));
  return sequence;
}

Function branch(const json& layers) {
  return Function([sequence = sequence_of(layers)](Value x, GraphBuilder& b) { return sequence->build(x, b); });
}

HeightWidth pair_of(const json& both) { return {both[0].get<std::int64_t>(), both[1].get<std::int64_t>()}; }

Conv2d image_convolution(const json& d) {
  Conv2dOptions options{
      .stride = pair_of(d["stride"]), .dilation = pair_of(d["dilation"]), .groups = d["groups"], .bias = d["bias"]};
  options.padding = pair_of(d["padding"]);
  return Conv2d(d["outputs"].get<std::int64_t>(), pair_of(d["kernel"]), options);
}

Conv1d sequence_convolution(const json& d) {
  Conv1dOptions options{.stride = d["stride"], .dilation = d["dilation"], .groups = d["groups"], .bias = d["bias"]};
  options.padding = d["padding"].get<std::int64_t>();
  return Conv1d(d["outputs"].get<std::int64_t>(), d["kernel"].get<std::int64_t>(), options);
}

template <class L>
std::shared_ptr<const Layer> shared(L layer) {
  return std::make_shared<L>(std::move(layer));
}

std::shared_ptr<const Layer> layer_of(const json& d) {
  using Make = std::shared_ptr<const Layer> (*)(const json&);
  static const std::map<std::string, Make, std::less<>> makers{
      {"dense", [](const json& l) { return shared(Dense(l["outputs"].get<std::int64_t>(), l["bias"].get<bool>())); }},
      {"conv2d", [](const json& l) { return shared(image_convolution(l)); }},
      {"conv1d", [](const json& l) { return shared(sequence_convolution(l)); }},
      {"max_pool2d",
       [](const json& l) {
         return shared(MaxPool2d(pair_of(l["kernel"]), pair_of(l["stride"]), pair_of(l["padding"])));
       }},
      {"average_pool2d",
       [](const json& l) { return shared(AveragePool2d(pair_of(l["kernel"]), pair_of(l["stride"]))); }},
      {"global_average_pool", [](const json&) { return shared(GlobalAveragePool()); }},
      {"flatten", [](const json&) { return shared(Flatten()); }},
      {"relu", [](const json&) { return shared(ReLU()); }},
      {"gelu", [](const json&) { return shared(GELU()); }},
      {"silu", [](const json&) { return shared(SiLU()); }},
      {"tanh", [](const json&) { return shared(Tanh()); }},
      {"sigmoid", [](const json&) { return shared(Sigmoid()); }},
      {"layer_norm", [](const json&) { return shared(LayerNorm()); }},
      {"batch_norm", [](const json&) { return shared(BatchNorm()); }},
      {"embedding",
       [](const json& l) {
         return shared(Embedding(l["rows"].get<std::int64_t>(), l["width"].get<std::int64_t>(), {.sparse = false}));
       }},
      {"attention",
       [](const json& l) {
         return shared(MultiHeadAttention(l["heads"].get<std::int64_t>(), {.causal = l["causal"]}));
       }},
      {"residual", [](const json& l) { return shared(Residual(branch(l["layers"]), branch(l["shortcut"]))); }},
      {"concat", [](const json& l) { return shared(Concat(branch(l["layers"]), branch(l["beside"]))); }},
  };
  return makers.at(d["kind"])(d);
}

std::unique_ptr<Loss> loss_of(const json& d) {
  const std::string kind = d["kind"];
  if (kind == "cross_entropy") {
    CrossEntropyOptions options;
    options.label_smoothing = d["smoothing"];
    return std::make_unique<SoftmaxCrossEntropy>(options);
  }
  if (kind == "mse") return std::make_unique<MeanSquaredError>();
  if (kind == "l1") return std::make_unique<L1Loss>();
  if (kind == "huber") return std::make_unique<HuberLoss>(1.0);
  if (kind == "bce") return std::make_unique<BCEWithLogitsLoss>();
  throw InputError("the loss '" + kind + "' is not known");
}

MemoryDataset samples_of(const std::filesystem::path& file) {
  std::vector<Column> columns;
  for (NamedTensor& tensor : read_safetensors(file).tensors) {
    const std::span<const std::int64_t> extents(tensor.shape.begin(), tensor.shape.end());
    Column column{tensor.name, Shape(extents.subspan(1)), std::move(tensor.values)};
    if (!tensor.integers.empty())
      column.values = std::vector<std::int32_t>(tensor.integers.begin(), tensor.integers.end());
    columns.push_back(std::move(column));
  }
  return MemoryDataset(std::move(columns));
}

json train(World& world, const std::filesystem::path& folder, const std::string& name) {
  const json described = json::parse(std::ifstream(folder / (name + ".json")));
  const auto file = [&](const char* kind) { return folder / (name + kind + ".safetensors"); };
  const auto model = sequence_of(described["layers"]);
  const auto loss = loss_of(described["loss"]);
  const MemoryDataset samples = samples_of(file(""));
  TrainingOptions options{.epochs = 1, .global_batch_size = described["batch"], .shuffle = false, .threads = 1};
  options.optimizer.name = described["optimizer"];
  options.optimizer.weight_decay = described["weight_decay"].get<double>();
  options.learning_rate = described["rate"].get<double>();
  options.init = file(".init");
  options.save = file(".saved");
  options.predictions = file(".outputs");
  Trainer trainer(world, *model, *loss, options);
  std::vector<double> losses;
  trainer.add({.step = [&](const StepReport& step) { losses.push_back(step.loss); }});
  trainer.fit(samples, samples);
  return {{"losses", losses}};
}

}  // namespace

int main(int argc, char** argv) {
  return launch(argc, argv, [&](World& world) {
    const std::vector<std::string> words(argv + 1, argv + argc);
    for (const std::string& name : std::span(words).subspan(1)) {
      json found;
      try {
        found = train(world, words[0], name);
      } catch (const Error& error) {
        found = {{"error", error.what()}};
      }
      std::ofstream(std::filesystem::path(words[0]) / (name + ".found.json")) << found << "\n";
    }
    return 0;
  });
}
