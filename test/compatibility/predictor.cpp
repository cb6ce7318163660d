#include <algorithm>
#include <cmath>

#include "check.hpp"

namespace compatibility {
namespace {

/// Equal within rounding: two plans may have chosen different computations.
bool near(const std::vector<float>& a, const std::vector<float>& b) {
  return std::ranges::equal(a, b, [](float x, float y) { return std::abs(x - y) < 1e-4F; });
}

}  // namespace

void predictor(ronda::World& world) {
  using namespace ronda;
  const SharedFolder folder(world);
  const MemoryDataset data = points(100);
  const Sequential model(Dense(8), ReLU(), Dense(2));
  const SoftmaxCrossEntropy loss;
  Trainer trainer(world, model, loss, {.epochs = 2, .learning_rate = 0.1, .threads = 1});
  static_cast<void>(trainer.fit(data));

  Predictor predictor(model, data.fields(), {.batch_size = 7});
  predictor.take(trainer.strategy());
  const Predictions outputs = predictor.predict(data);
  require(outputs.shape == Shape{100, 2} && outputs.values.size() == 200, "outputs of all samples");
  if (world.rank() > 0) return;

  const std::filesystem::path file = folder / "model.safetensors";
  write_safetensors(file, predictor.tensors(), {{"format", "pt"}});
  Predictor loaded(model, data.fields());
  loaded.load(file);
  require(near(loaded.predict(data).values, outputs.values), "the same outputs from a file");
  require(near(predict(model, file, data).values, outputs.values), "and in one call");
  std::size_t rows = 0;
  loaded.predict(data, [&](std::span<const float> some) { rows += some.size() / 2; });
  require(rows == 100, "outputs batch by batch");

  if (onnx_library().empty()) return;
  write_onnx(folder / "model.onnx", build_graph(model, data.fields(), 1), predictor.tensors(), file, {.name = "model"});
  require(std::filesystem::file_size(folder / "model.onnx") > 0, "an ONNX file");
}

}  // namespace compatibility
