// A model of int8 weights says what the float32 model says, also from its file; what cannot be quantised is told.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/layers/layers.hpp>
#include <ronda/runtime/io/safetensors.hpp>
#include <ronda/runtime/trainer/quantization.hpp>

#include "support/catch.hpp"
#include "support/message.hpp"
#include "support/temporary_folder.hpp"
#include "support/toy_data.hpp"

using namespace ronda;
using namespace ronda::test;

namespace quantization_test {
namespace {

/// A predictor's tensors, all weights of them set to some numbers.
std::vector<NamedTensor> some_tensors(const Layer& model, const Dataset& data) {
  std::vector<NamedTensor> tensors = Predictor(model, data.fields()).tensors();
  for (NamedTensor& tensor : tensors)
    for (std::size_t i = 0; i < tensor.values.size(); ++i)
      tensor.values[i] = 0.3F * static_cast<float>(std::sin(1 + 7.0 * static_cast<double>(i)));
  return tensors;
}

std::vector<NamedTensor> quantized(const Layer& model, const std::vector<NamedTensor>& tensors, const Dataset& data) {
  const Dataset* const samples[] = {&data};
  return quantize(model, tensors, "model", samples);
}

std::vector<float> outputs_of(const Layer& model, std::span<const NamedTensor> tensors, const Dataset& data,
                              std::size_t batch_size = 64) {
  Predictor predictor(model, data.fields(), {.batch_size = batch_size, .rewrite = int8_rewrite(int8_weights(tensors))});
  predictor.load(tensors, "model");
  return predictor.predict(data).values;
}

}  // namespace

TEST_CASE("a model of int8 gives what the model in float32 gives, within 4 % of the largest output") {
  const MemoryDataset data = toy_images(50, {12, 10, 2}, 4);
  const Sequential model(Conv2d(8, 3), ReLU(), MaxPool2d(2), Residual(Conv2d(8, 3, 1, 1)), Flatten(), Dense(20), ReLU(),
                         Dense(4));
  const std::vector<NamedTensor> before = some_tensors(model, data), after = quantized(model, before, data);
  CHECK(int8_weights(after) ==
        std::vector<std::string>{"conv1.weight", "conv2.weight", "dense1.weight", "dense2.weight"});
  const std::vector<float> expected = outputs_of(model, before, data);

  const TemporaryFolder folder;
  write_safetensors(folder / "int8", after);
  const std::vector<NamedTensor> read = read_safetensors(folder / "int8").tensors;
  const std::vector<float> found = outputs_of(model, read, data);
  REQUIRE(found.size() == expected.size());
  float largest = 0, worst = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    worst = std::max(worst, std::abs(found[i] - expected[i]));
  }
  INFO("worst " << worst << " of " << largest);
  CHECK(worst < 0.04F * largest);  // four layers, of weights whose sums cancel
  CHECK(worst > 0);
  CHECK(outputs_of(model, read, data, 7) == found);  // sums are exact: a sample's outputs do not depend on its batch
}

TEST_CASE("samples from several places count together for the ranges") {
  const MemoryDataset few = toy_images(3, {6, 6, 1}, 2), many = toy_images(40, {6, 6, 1}, 2);
  const Sequential model(Flatten(), Dense(3));
  const std::vector<NamedTensor> tensors = some_tensors(model, many);
  const Dataset* const both[] = {&few, &many};
  std::vector<std::size_t> told;
  const std::vector<NamedTensor> result =
      quantize(model, tensors, "model", both, {.batch_size = 16}, [&](std::size_t done) { told.push_back(done); });
  CHECK(told == std::vector<std::size_t>{3, 19, 35, 43});
  const auto scale = [](const std::vector<NamedTensor>& all) {
    return std::ranges::find(all, "dense1.input_scale", &NamedTensor::name)->values.at(0);
  };
  CHECK(scale(result) >= scale(quantized(model, tensors, few)));
  CHECK(scale(result) >= scale(quantized(model, tensors, many)));
}

TEST_CASE("a quantised model does not depend on how its samples fill the last batch") {
  std::vector<float> inputs(65 * 4);
  for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i] = std::sin(static_cast<float>(3 * i));
  for (std::size_t i = 64 * 4; i < inputs.size(); ++i) inputs[i] = 6;  // the last sample, alone in its batch
  const MemoryDataset data(std::move(inputs), Shape{4}, std::vector<std::int32_t>(65));
  const Sequential model(Dense(16), ReLU(), Dense(3));
  const std::vector<NamedTensor> tensors = some_tensors(model, data);
  const Dataset* const samples[] = {&data};
  const std::vector<NamedTensor> whole = quantize(model, tensors, "model", samples, {.batch_size = 65});
  for (const std::size_t batch_size : {std::size_t{13}, std::size_t{64}, std::size_t{100}}) {
    const std::vector<NamedTensor> cut = quantize(model, tensors, "model", samples, {.batch_size = batch_size});
    for (std::size_t i = 0; i < whole.size(); ++i) {
      INFO(whole[i].name << ", batches of " << batch_size);
      CHECK(cut[i].bytes == whole[i].bytes);
      REQUIRE(cut[i].values.size() == whole[i].values.size());
      for (std::size_t k = 0; k < whole[i].values.size(); ++k)
        CHECK(cut[i].values[k] == Approx(whole[i].values[k]).margin(1e-6));
    }
  }
}

TEST_CASE("what cannot be quantised is told") {
  const MemoryDataset data = toy_images(10, {6, 6, 1}, 2);
  const Sequential model(Flatten(), Dense(3));
  const std::vector<NamedTensor> tensors = some_tensors(model, data);
  const auto message = [&](const Layer& layer, const std::vector<NamedTensor>& given, const Dataset& samples) {
    return message_of<InputError>([&] { static_cast<void>(quantized(layer, given, samples)); });
  };
  require_mentions(message_of<InputError>([&] { static_cast<void>(quantize(model, tensors, "model", {})); }),
                   {"samples", "none"});
  std::vector<NamedTensor> spoiled = tensors;
  spoiled[0].values[3] = std::numeric_limits<float>::quiet_NaN();
  require_mentions(message(model, spoiled, data), {"model", "dense1.weight", "NaN"});
  spoiled[0].values[3] = std::numeric_limits<float>::infinity();
  require_mentions(message(model, spoiled, data), {"dense1.weight"});
  spoiled[0].values[3] = std::numeric_limits<float>::max();
  spoiled[0].values[4] = std::numeric_limits<float>::max();
  const Sequential deep(Flatten(), Dense(3), ReLU(), Dense(2));
  std::vector<NamedTensor> large = some_tensors(deep, data);
  std::ranges::fill(large[0].values, std::numeric_limits<float>::max());
  require_mentions(message(deep, large, data), {"dense2.weight", "not finite"});
  require_mentions(message(model, quantized(model, tensors, data), data), {"quantised already", "dense1.weight"});
  require_mentions(message(ReLU(), {}, data), {"no dense layer"});
  require_mentions(message(Sequential(Flatten(), Dense(4)), tensors, data), {"dense1.weight", "shape"});
}

TEST_CASE("scales that none can be are refused, by the tensor's name") {
  const MemoryDataset data = toy_images(4, {6, 6, 1}, 2);
  const Sequential model(Flatten(), Dense(3));
  const std::vector<NamedTensor> sound = quantized(model, some_tensors(model, data), data);
  CHECK_NOTHROW(require_scales(sound, "model"));
  const auto message = [&](const std::string& name, float value) {
    std::vector<NamedTensor> damaged = sound;
    std::ranges::find(damaged, name, &NamedTensor::name)->values.back() = value;
    return message_of<InputError>([&] { require_scales(damaged, "model"); });
  };
  require_mentions(message("dense1.weight_scale", 0), {"model", "dense1.weight_scale", "has 0"});
  require_mentions(message("dense1.weight_scale", -1), {"dense1.weight_scale", "-1"});
  require_mentions(message("dense1.input_scale", std::numeric_limits<float>::infinity()), {"dense1.input_scale"});
  require_mentions(message("dense1.input_zero", 256), {"dense1.input_zero", "256"});
  require_mentions(message("dense1.input_zero", std::numeric_limits<float>::quiet_NaN()), {"dense1.input_zero"});
}

TEST_CASE("a sample that is not finite gives NaN, and others in its batch are as they are without it") {
  const MemoryDataset sound = toy_images(4, {6, 6, 1}, 2);
  const Sequential model(Conv2d(4, 3), ReLU(), Flatten(), Dense(3));
  const std::vector<NamedTensor> tensors = quantized(model, some_tensors(model, sound), sound);
  std::vector<float> pixels(4 * 36);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(i % 7) / 7;
  const auto data = [&] {
    return MemoryDataset(std::vector<float>(pixels), Shape{6, 6, 1}, std::vector<std::int32_t>(4));
  };
  const std::vector<float> before = outputs_of(model, tensors, data());
  pixels[36 + 5] = std::numeric_limits<float>::quiet_NaN();
  pixels[2 * 36] = -std::numeric_limits<float>::infinity();
  const std::vector<float> after = outputs_of(model, tensors, data());
  for (std::size_t i = 0; i < after.size(); ++i)
    if (i / 3 == 1 || i / 3 == 2)
      CHECK(std::isnan(after[i]));
    else
      CHECK(after[i] == before[i]);
}

}  // namespace quantization_test
