// A program that only computes gives what the trained model gives, without loss, optimizer or targets.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/runtime/checkpoint/checkpoint_folder.hpp>
#include <ronda/runtime/checkpoint/model_in.hpp>
#include <ronda/runtime/io/safetensors.hpp>
#include <ronda/runtime/strategy/step/mirrored_options.hpp>
#include <ronda/runtime/trainer/parameter_files.hpp>
#include <ronda/runtime/trainer/predictor.hpp>
#include <ronda/runtime/trainer/trainer.hpp>

#include "support/catch.hpp"
#include "support/message.hpp"
#include "support/ranks.hpp"
#include "support/running_mean.hpp"
#include "support/temporary_folder.hpp"
#include "support/toy_data.hpp"
#include "trainer/saved_training.hpp"

using namespace ronda;
using namespace ronda::test;

namespace predictor_test {
namespace {

/// The inputs of some data alone.
class InputsAlone final : public Dataset {
 public:
  explicit InputsAlone(const Dataset& data) : data_(data), input_{data.fields()[0]} {}
  [[nodiscard]] std::size_t size() const override { return data_.size(); }
  [[nodiscard]] std::span<const Field> fields() const override { return {&input_, 1}; }
  void read(const SampleRequest& request, Batch& batch) const override {
    Batch whole(data_.fields(), batch.capacity());
    data_.read(request, whole);
    std::ranges::copy(whole.input().as<float>(), batch.input().as<float>().begin());
  }
  [[nodiscard]] std::uint64_t fingerprint() const override { return data_.fingerprint(); }

 private:
  const Dataset& data_;
  Field input_;
};

/// What batch norms of a strategy have on this rank: running values, and counts.
std::pair<std::vector<float>, std::vector<std::int64_t>> batch_norm_states(Strategy& strategy) {
  struct States final : StateVisitor {
    void visit(const State& state) override {
      if (state.tensor.dtype() == DType::int64) {
        counts.push_back(state.tensor.as<std::int64_t>()[0]);
      } else {
        const auto numbers = state.tensor.as<float>();
        values.insert(values.end(), numbers.begin(), numbers.end());
      }
    }
    std::vector<float> values;
    std::vector<std::int64_t> counts;
  } states;
  strategy.state().visit_layer_states(states);
  return {states.values, states.counts};
}

}  // namespace

TEST_CASE("predictions are what evaluation sees, for any number of samples at once") {
  const MemoryDataset data = toy_images(90, {9, 7, 1}, 4);
  const InputsAlone inputs(data);
  const Sequential model(Conv2d(16, 3), ReLU(), MaxPool2d(2), Residual(Conv2d(16, 3, 1, 1)), Flatten(), RunningMean(),
                         Dense(4));
  const SoftmaxCrossEntropy loss;
  Trainer trainer(world(), model, loss, {.epochs = 1, .global_batch_size = 30});
  trainer.fit(data, data);
  const Predictions all = predict(model, trainer.strategy(), inputs);
  CHECK(all.shape == Shape{90, 4});
  for (const std::size_t rows : {1, 7, 90, 100}) {
    const Predictions others = predict(model, trainer.strategy(), inputs, {.batch_size = rows});
    REQUIRE(others.values.size() == all.values.size());
    for (std::size_t i = 0; i < all.values.size(); ++i) CHECK(others.values[i] == Approx(all.values[i]).margin(1e-5));
  }
  std::size_t right = 0;
  Batch labels(data.fields(), 90);
  std::vector<std::uint64_t> samples(90);
  for (std::size_t i = 0; i < 90; ++i) samples[i] = i;
  data.read({.samples = samples}, labels);
  for (std::size_t i = 0; i < 90; ++i) {
    const auto row = std::span(all.values).subspan(i * 4, 4);
    right += std::ranges::max_element(row) - row.begin() == labels.target().as<const std::int32_t>()[i];
  }
  BatchLoader loader(data, SampleOrder(90, 1, false), BatchPlan(90, 30, shard_of(world().communicator())));
  CHECK(trainer.strategy().evaluate(loader).metric == Approx(static_cast<double>(right) / 90));
}

TEST_CASE("what a batch norm keeps is in the files of parameters, under PyTorch's names, and is one on all ranks") {
  const MemoryDataset data = toy_images(90, {9, 7, 1}, 4);
  const auto make_model = [] {
    return Sequential(Conv2d(16, 3), BatchNorm(), ReLU(), MaxPool2d(2), Flatten(), BatchNorm(1e-5F, 0.3F, false),
                      Dense(4));
  };
  const SoftmaxCrossEntropy loss;
  const SharedFolder folder;
  const Sequential model = make_model(), other = make_model();
  TrainingOptions options{.epochs = 2, .global_batch_size = 30};
  options.save = folder.path / "model";
  options.metadata = {{"about", "\"toy\""}};
  options.checkpoint_dir = folder.path / "checkpoints";
  Trainer trainer(world(), model, loss, options);
  trainer.fit(data);  // nobody evaluates
  const auto [values, integers] = batch_norm_states(trainer.strategy());
  CHECK(integers == std::vector<std::int64_t>{6, 6});
  CHECK(std::ranges::any_of(values, [](float value) { return value != 0 && value != 1; }));
  std::vector<float> sums = values;
  trainer.strategy().communicator().allreduce(Tensor(std::span(sums)));
  for (std::size_t i = 0; i < sums.size(); ++i) CHECK(sums[i] == values[i] * static_cast<float>(world().size()));

  const InputsAlone inputs(data);
  CHECK(predict(model, folder.path / "model", inputs).values == predict(model, trainer.strategy(), inputs).values);
  const auto written = read_safetensors(folder.path / "model").tensors;
  const auto counter = std::ranges::find(written, "batch_norm2.num_batches_tracked", &NamedTensor::name);
  REQUIRE(counter != written.end());
  CHECK((counter->shape == Shape{} && counter->integers == std::vector<std::int64_t>{6}));

  CHECK(read_safetensors(folder.path / "model").metadata ==
        std::map<std::string, std::string>{{"format", "pt"}, {"about", "\"toy\""}});

  const std::filesystem::path checkpoint = list_checkpoints(options.checkpoint_dir).back().path;
  const CheckpointManifest manifest = read_manifest(manifest_of(checkpoint));
  CHECK(manifest.metadata == options.metadata);
  Predictor predictor(model, inputs.fields());
  predictor.load(model_in(checkpoint, manifest, false), checkpoint);
  CHECK(predictor.predict(inputs).values == predict(model, trainer.strategy(), inputs).values);
  std::vector<NamedTensor> cut = model_in(checkpoint, manifest, false);
  cut.erase(cut.begin());
  require_mentions(message_of<InputError>([&] { predictor.load(cut, "somewhere"); }), {"somewhere", "is not in this"});
  write_safetensors(folder.path / ("exported" + std::to_string(world().rank())),
                    model_in(checkpoint, read_manifest(manifest_of(checkpoint)), false));
  const Predictions exported = predict(model, folder.path / ("exported" + std::to_string(world().rank())), inputs),
                    saved = predict(model, folder.path / "model", inputs);
  for (std::size_t i = 0; i < saved.values.size(); ++i)
    CHECK(exported.values[i] == Approx(saved.values[i]).margin(1e-6));

  TrainingOptions further{.epochs = 1, .global_batch_size = 90};
  further.init = folder.path / "model";
  further.learning_rate = 0;
  Trainer going_on(world(), other, loss, further);
  going_on.fit(data);
  CHECK(batch_norm_states(going_on.strategy()).second == std::vector<std::int64_t>{7, 7});
  CHECK(batch_norm_states(going_on.strategy()).first != values);
}

TEST_CASE("a checkpoint's model is what is saved: the average of the parameters, without what the optimizers keep") {
  const MemoryDataset data = toy_images(90, {9, 7, 1}, 4);
  const InputsAlone inputs(data);
  const Sequential model(Flatten(), Dense(9), ReLU(), Dense(4));
  const SoftmaxCrossEntropy loss;
  for (const char* strategy : {"mirrored", "local_sgd"}) {
    CAPTURE(strategy);
    const SharedFolder folder;
    TrainingOptions options{.epochs = 2, .global_batch_size = 30};
    options.optimizer.name = "adam";
    options.strategy = strategy;
    if (options.strategy.name() == "local_sgd")
      options.strategy = LocalSgd{.synchronise_every = 2, .outer_optimizer = OuterOptimizer::nesterov};
    options.ema_decay = 0.9;
    options.save = folder.path / "model";
    options.checkpoint_dir = folder.path / "checkpoints";
    Trainer trainer(world(), model, loss, options);
    trainer.fit(data);
    const std::filesystem::path checkpoint = list_checkpoints(options.checkpoint_dir).back().path;
    const CheckpointManifest manifest = read_manifest(manifest_of(checkpoint));
    Predictor predictor(model, inputs.fields());
    predictor.load(model_in(checkpoint, manifest, false), checkpoint);
    CHECK(predictor.predict(inputs).values == predict(model, folder.path / "model", inputs).values);
    const auto all = model_in(checkpoint, manifest, true);
    CHECK(std::ranges::count(all, "dense1.weight.ema", &NamedTensor::name) == 1);
    CHECK(std::ranges::count(all, "dense1.weight", &NamedTensor::name) == 1);
  }
}

TEST_CASE("a model of sequences predicts from its file and checkpoint what it was trained to, and trains on from it") {
  const MemoryDataset data = toy_images(90, {21, 6}, 4);
  const InputsAlone inputs(data);
  const Sequential model(Conv1d(32, 3, {.padding = same_padding, .bias = false}), ReLU(), MaxPool1d(2),
                         Conv1d(16, 4, {.dilation = 2, .groups = 4}), Flatten(), Dense(4));
  const SoftmaxCrossEntropy loss;
  const SharedFolder folder;
  TrainingOptions options{.epochs = 2, .global_batch_size = 30};
  options.save = folder.path / "model";
  options.checkpoint_dir = folder.path / "checkpoints";
  Trainer trainer(world(), model, loss, options);
  trainer.fit(data);
  const Predictions trained = predict(model, trainer.strategy(), inputs);
  CHECK(predict(model, folder.path / "model", inputs).values == trained.values);
  std::map<std::string, Shape> shapes;
  for (const NamedTensor& tensor : read_safetensors(folder.path / "model").tensors) shapes[tensor.name] = tensor.shape;
  CHECK(shapes == std::map<std::string, Shape>{{"conv1.weight", {32, 6, 3}},
                                               {"conv2.weight", {16, 8, 4}},
                                               {"conv2.bias", {16}},
                                               {"dense1.weight", {4, 4 * 16}},
                                               {"dense1.bias", {4}}});
  const std::filesystem::path checkpoint = list_checkpoints(options.checkpoint_dir).back().path;
  Predictor predictor(model, inputs.fields());
  predictor.load(model_in(checkpoint, read_manifest(manifest_of(checkpoint)), false), checkpoint);
  CHECK(predictor.predict(inputs).values == trained.values);

  TrainingOptions further{.epochs = 1, .global_batch_size = 90};
  further.init = folder.path / "model";
  further.learning_rate = 1e-9;
  Trainer going_on(world(), model, loss, further);
  going_on.fit(data);
  const Predictions again = predict(model, going_on.strategy(), inputs);
  REQUIRE(again.values.size() == trained.values.size());
  for (std::size_t i = 0; i < again.values.size(); ++i)
    CHECK(again.values[i] == Approx(trained.values[i]).margin(1e-5));
}

TEST_CASE("a file without what a batch norm keeps is refused; one without counts is not") {
  const MemoryDataset data = toy_images(20, {5}, 4);
  const Sequential model(Dense(6), BatchNorm());
  Predictor predictor(model, data.fields());
  const TemporaryFolder folder;
  save_parameters(folder.path() / "parameters", predictor.parameters());
  require_mentions(message_of<InputError>([&] { predictor.load(folder.path() / "parameters"); }),
                   {"batch_norm1.running_mean", "not in this file"});
  std::vector<NamedTensor> tensors = read_safetensors(folder.path() / "parameters").tensors;
  tensors.push_back({"batch_norm1.running_mean", Shape{6}, {1, 2, 3, 4, 5, 6}});
  tensors.push_back({"batch_norm1.running_var", Shape{6}, std::vector<float>(6, 4.0F)});
  write_safetensors(folder.path() / "without", tensors);
  predictor.load(folder.path() / "without");
  CHECK(predictor.program().states()[0].as<float>()[5] == 6);
  tensors.push_back({"batch_norm1.num_batches_tracked", Shape{}, {3}});
  write_safetensors(folder.path() / "float", tensors);
  require_mentions(message_of<InputError>([&] { predictor.load(folder.path() / "float"); }),
                   {"batch_norm1.num_batches_tracked", "float32", "int64"});
}

TEST_CASE("predictions from a file, and files and data that do not fit") {
  const MemoryDataset data = toy_images(20, {5}, 4);
  const Sequential model(Dense(6), ReLU(), Dense(4));
  Predictor first(model, data.fields());
  std::uint64_t seed = 0;
  for (const Parameter& parameter : first.parameters()) initialize(parameter, Initializer::he_normal, 5, 5, ++seed);
  const TemporaryFolder folder;
  save_parameters(folder.path() / "model", first.parameters());
  CHECK(predict(model, folder.path() / "model", data).values == first.predict(data).values);
  CHECK_THROWS_AS(predict(Sequential(Dense(7), Dense(4)), folder.path() / "model", data), InputError);
  CHECK_THROWS_AS(first.predict(toy_images(20, {6}, 4)), InputError);
  CHECK_THROWS_AS(predict(model, folder.path() / "none", data), InputError);
}

}  // namespace predictor_test
