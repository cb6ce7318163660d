// How much a sample counts.
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>
#include <ronda/data/loader.hpp>
#include <ronda/data/memory_dataset.hpp>

#include "support/catch.hpp"
#include "support/message.hpp"

using namespace ronda;
using test::message_of;
using test::require_mentions;

namespace {

/// If weighed, sample i has weight i / 4 + 0.5, except those in `other`.
class Weighed final : public Dataset {
 public:
  explicit Weighed(bool weighs, std::map<std::uint64_t, float> other = {})
      : weighs_(weighs), other_(std::move(other)) {}
  [[nodiscard]] std::size_t size() const override { return data_.size(); }
  [[nodiscard]] std::span<const Field> fields() const override { return data_.fields(); }
  void read(const SampleRequest& request, Batch& batch) const override {
    data_.read(request, batch);
    if (!weighs_) return;
    for (std::size_t row = 0; row < request.samples.size(); ++row)
      batch.weights().as<float>()[row] =
          other_.contains(request.samples[row]) ? other_.at(request.samples[row]) : weight(request.samples[row]);
  }
  [[nodiscard]] static float weight(std::uint64_t sample) { return static_cast<float>(sample) / 4 + 0.5F; }
  [[nodiscard]] std::uint64_t fingerprint() const override { return 0; }

 private:
  bool weighs_;
  std::map<std::uint64_t, float> other_;
  MemoryDataset data_{std::vector<float>(11), Shape{1}, std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}};
};

}  // namespace

TEST_CASE("a weight that is negative, no number or beyond what gradients hold is refused, by its sample") {
  for (const float odd : {-1.0F, std::nanf(""), std::numeric_limits<float>::infinity(), 1e38F, 1e-36F, 1e-42F})
    for (const bool prefetch : {true, false}) {
      const Weighed data(true, {{7, odd}});
      BatchLoader loader(data, SampleOrder(11, 1, false), BatchPlan(11, 4, {0, 1}), prefetch);
      static_cast<void>(loader.next());
      require_mentions(message_of<InputError>([&] { static_cast<void>(loader.next()); }),
                       {"sample 7", "weight " + shortest(odd), "0, or a number from 1e-18 to 1e+09"});
    }
  const Weighed sound(true, {{7, Dataset::largest_weight}, {8, 0.0F}, {9, 1e-18F}});
  BatchLoader loader(sound, SampleOrder(11, 1, false), BatchPlan(11, 11, {0, 1}), false);
  CHECK(loader.next().weights().as<const float>()[9] == 1e-18F);
}

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
