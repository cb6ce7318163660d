// How much a sample counts.
#include <ronda/data/loader.hpp>
#include <ronda/data/memory_dataset.hpp>

#include "support/catch.hpp"

using namespace ronda;

namespace {

/// Sample i weighs i / 4 + 0.5, where they are weighed.
class Weighed final : public Dataset {
 public:
  explicit Weighed(bool weighs) : weighs_(weighs) {}
  [[nodiscard]] std::size_t size() const override { return data_.size(); }
  [[nodiscard]] std::span<const Field> fields() const override { return data_.fields(); }
  void read(const SampleRequest& request, Batch& batch) const override {
    data_.read(request, batch);
    if (!weighs_) return;
    for (std::size_t row = 0; row < request.samples.size(); ++row)
      batch.weights().as<float>()[row] = weight(request.samples[row]);
  }
  [[nodiscard]] static float weight(std::uint64_t sample) { return static_cast<float>(sample) / 4 + 0.5F; }
  [[nodiscard]] std::uint64_t fingerprint() const override { return 0; }

 private:
  bool weighs_;
  MemoryDataset data_{std::vector<float>(11), Shape{1}, std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}};
};

}  // namespace

TEST_CASE("a sample weighs what its dataset says, one without a word 1, and padding nothing") {
  for (const bool weighs : {true, false})
    for (const bool prefetch : {true, false}) {
      const Weighed data(weighs);
      BatchLoader loader(data, SampleOrder(11, 1, true), BatchPlan(11, 4, {0, 1}), prefetch);
      for (int k = 0; k < 9; ++k) {  // the third batch of an epoch has three samples
        const Batch& batch = loader.next();
        const auto weights = batch.weights().as<const float>();
        for (std::size_t row = 0; row < batch.capacity(); ++row) {
          const auto sample = static_cast<std::uint64_t>(batch.target().as<const std::int32_t>()[row]);
          CHECK(weights[row] == (row >= batch.real() ? 0.0F : weighs ? Weighed::weight(sample) : 1.0F));
        }
      }
    }
}
