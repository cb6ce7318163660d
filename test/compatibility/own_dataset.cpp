#include <array>
#include <cmath>

#include "check.hpp"

namespace compatibility {
namespace {

using namespace ronda;

/// x, and whether x is above 0, computed in `read`; every tenth sample has weight 0 and a wrong label.
class Computed final : public Dataset {
 public:
  [[nodiscard]] std::size_t size() const override { return 300; }
  [[nodiscard]] std::span<const Field> fields() const override { return fields_; }
  void read(const SampleRequest& request, Batch& batch) const override {
    for (std::size_t row = 0; row < request.samples.size(); ++row) {
      const std::uint64_t sample = request.samples[row];
      const float noise = request.epoch > 0 ? 0.01F * request.key(row, "noise").uniform(0) : 0;
      const float x = static_cast<float>(sample * 37 % 101) / 50 - 1;
      const bool wrong = sample % 10 == 0;
      batch.input().as<float>()[row] = x + noise;
      batch.target().as<std::int32_t>()[row] = (x > 0) != wrong ? 1 : 0;
      batch.weights().as<float>()[row] = wrong ? 0.0F : 1.0F;
    }
  }

 private:
  std::array<Field, 2> fields_{Field{"input", Shape{1}}, Field{"target", Shape{}, DType::int32}};
};

}  // namespace

void own_dataset(World& world) {
  const Computed data;
  const SoftmaxCrossEntropy loss;
  const Sequential model(Dense(8), ReLU(), Dense(2));
  const DatasetPart train(data, 0, 240), test(data, std::vector<std::uint64_t>{241, 242, 243, 250, 260});
  const Transform nothing{.name = "nothing", .apply = [](const SampleRow& sample, const RngKey&) {
                            for (float& x : sample.field("input").as<float>()) x += 0;
                          }};
  const TransformedDataset transformed(train, {nothing});
  Trainer trainer(
      world, model, loss,
      {.epochs = 10, .global_batch_size = 24, .optimizer = {.name = "adam"}, .learning_rate = 0.05, .threads = 1});
  require(trainer.fit(transformed, test).metric == 1, "samples without a weight that count for nothing");
  require(data.fingerprint() == Computed().fingerprint(), "a fingerprint of what is read");
}

}  // namespace compatibility
