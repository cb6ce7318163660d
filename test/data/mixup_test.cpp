// Mixup: what is mixed, how the shares are distributed, and that it depends on seed, epoch and sample alone.
#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/data/dataset_part.hpp>
#include <ronda/data/loader.hpp>
#include <ronda/data/memory_dataset.hpp>
#include <ronda/data/mixup.hpp>

#include "support/catch.hpp"
#include "support/memory.hpp"
#include "support/message.hpp"

using namespace ronda;
using test::message_of;
using test::require_mentions;

namespace {

constexpr std::size_t samples_in_all = 41;

/// A class a sample, and inputs that are the class, one-hot: mixed they are the target.
MemoryDataset one_hot() {
  std::vector<float> inputs(samples_in_all * samples_in_all);
  std::vector<std::int32_t> labels(samples_in_all);
  for (std::size_t i = 0; i < samples_in_all; ++i) {
    inputs[i * samples_in_all + i] = 1;
    labels[i] = static_cast<std::int32_t>(i);
  }
  return {std::move(inputs), Shape{samples_in_all}, std::move(labels)};
}

/// The same, where sample n weighs n, and those above 20 are damaged: they have no weight, and no label.
class Weighted final : public Dataset {
 public:
  [[nodiscard]] std::size_t size() const override { return data_.size(); }
  [[nodiscard]] std::span<const Field> fields() const override { return data_.fields(); }
  void read(const SampleRequest& request, Batch& batch) const override {
    data_.read(request, batch);
    for (std::size_t row = 0; row < request.samples.size(); ++row) {
      const std::uint64_t sample = request.samples[row];
      batch.weights().as<float>()[row] = sample > 20 ? 0 : static_cast<float>(sample);
      if (sample > 20) batch.target().as<std::int32_t>()[row] = -100;
    }
  }

 private:
  MemoryDataset data_ = one_hot();
};

struct MixedRow {
  std::vector<float> input, target;
  float weight;
  bool operator==(const MixedRow&) const = default;
};

MixedRow mixed_row_of(const Batch& batch, std::size_t row) {
  const auto part = [&](const Tensor& all) {
    const auto values = all.as<const float>().subspan(row * samples_in_all, samples_in_all);
    return std::vector<float>(values.begin(), values.end());
  };
  return {part(batch.input()), part(batch.target()), batch.weights().as<const float>()[row]};
}

MixedRow mixed_row(const Dataset& data, std::uint64_t sample, std::uint64_t epoch, std::uint64_t seed = 7) {
  Batch batch(data.fields(), 1);
  const std::vector<std::uint64_t> samples{sample};
  data.read({samples, epoch, seed}, batch);
  return mixed_row_of(batch, 0);
}

}  // namespace

TEST_CASE("inputs and targets of two samples are mixed by one share; in a test each is itself") {
  const MemoryDataset plain = one_hot();
  const MixupDataset data(plain, 0.5, samples_in_all);
  std::set<std::size_t> partners;
  for (std::uint64_t sample = 0; sample < samples_in_all; ++sample) {
    const MixedRow mixed = mixed_row(data, sample, 1), itself = mixed_row(data, sample, 0);
    CHECK(mixed.weight == 1);
    float sum = 0;
    for (std::size_t c = 0; c < samples_in_all; ++c) {
      CHECK(mixed.input[c] == Approx(mixed.target[c]).margin(1e-7));  // of 1 − (1 − λ)
      CHECK(itself.target[c] == (c == sample ? 1 : 0));
      sum += mixed.target[c];
      if (c != sample && mixed.target[c] > 0) partners.insert(c);
    }
    CHECK(sum == Approx(1).margin(1e-7));
    CHECK(itself.input == itself.target);
    CHECK(std::ranges::count_if(mixed.target, [](float p) { return p > 0; }) <= 2);
    CHECK(mixed_row(data, sample, 1) == mixed);
  }
  CHECK(partners.size() > samples_in_all / 2);
  CHECK(mixed_row(data, 3, 1) != mixed_row(data, 3, 2));
  CHECK(mixed_row(data, 3, 1) != mixed_row(data, 3, 1, 8));
}

TEST_CASE("shares have the mean and the variance of Beta(alpha, alpha)") {
  const MemoryDataset plain = one_hot();
  for (const double alpha : {0.1, 0.4, 1.0, 3.0}) {
    const MixupDataset data(plain, alpha, samples_in_all);
    double sum = 0, squares = 0, draws = 0;
    for (std::uint64_t epoch = 1; epoch <= 200; ++epoch)
      for (std::uint64_t sample = 0; sample < samples_in_all; ++sample) {
        const MixedRow row = mixed_row(data, sample, epoch);
        const float share = row.target[sample];
        const bool alone = share == 1 && std::ranges::count(row.target, 0.0F) == samples_in_all - 1;
        if (alone && alpha >= 1) continue;  // its own partner
        sum += share;
        squares += share * share;
        ++draws;
      }
    const double mean = sum / draws, variance = squares / draws - mean * mean, expected = 1 / (4 * (2 * alpha + 1));
    // 8200 draws; one in 41 is its own partner, which moves the mean of small alphas by 1/82.
    CHECK(mean == Approx(0.5).margin(0.03));
    CHECK(variance == Approx(expected).epsilon(0.06));
  }
}

TEST_CASE("a sample is mixed alike on any number of ranks, in any batch, read ahead or not") {
  const MemoryDataset plain = one_hot();
  const MixupDataset data(plain, 0.3, samples_in_all);
  std::vector<MixedRow> expected;
  for (std::uint64_t sample = 0; sample < samples_in_all; ++sample) expected.push_back(mixed_row(data, sample, 2));
  for (const std::size_t shards : {1, 2, 3})
    for (const bool prefetch : {false, true}) {
      std::vector<MixedRow> found;
      for (std::size_t shard = 0; shard < shards; ++shard) {
        const BatchPlan plan(samples_in_all, 10, {shard, shards});
        BatchLoader loader(data, SampleOrder(samples_in_all, 7, true), plan, prefetch);
        loader.seek(2, 0);
        for (std::size_t step = 0; step < plan.steps_per_epoch(); ++step) {
          const Batch& batch = loader.next();
          for (std::size_t row = 0; row < batch.real(); ++row) found.push_back(mixed_row_of(batch, row));
          for (std::size_t row = batch.real(); row < batch.capacity(); ++row)
            CHECK(mixed_row_of(batch, row).weight == 0);
        }
      }
      CHECK(std::ranges::is_permutation(found, expected));
    }
}

TEST_CASE("a row whose only sound half has a tiny share does not count, and the loader takes it") {
  const Weighted data;
  const MixupDataset mixup(data, 0.01, samples_in_all);  // half of the shares are below 1e-18
  BatchLoader loader(mixup, SampleOrder(samples_in_all, 1, true), BatchPlan(samples_in_all, samples_in_all, {0, 1}),
                     false);
  for (int epoch = 0; epoch < 20; ++epoch)
    for (const float weight : loader.next().weights().as<const float>())
      CHECK((weight == 0 || weight >= Dataset::smallest_weight));
}

TEST_CASE("each half counts with its sample's weight, and a damaged one not at all, nor is it seen") {
  const MemoryDataset even = one_hot();
  const Weighted plain;
  const MixupDataset shares(even, 1, samples_in_all), data(plain, 1, samples_in_all);
  const auto weight_of = [](std::size_t sample) { return sample > 20 ? 0.0F : static_cast<float>(sample); };
  int damaged = 0, alone = 0;
  for (std::uint64_t sample = 0; sample < samples_in_all; ++sample) {
    const std::vector<float> share = mixed_row(shares, sample, 1).input;
    const MixedRow row = mixed_row(data, sample, 1);
    float weight = 0, seen = 0;
    for (std::size_t c = 0; c < samples_in_all; ++c) {
      weight += share[c] * weight_of(c);
      if (weight_of(c) > 0) seen += share[c];
    }
    CHECK(row.weight == Approx(weight).margin(1e-5));
    for (std::size_t c = 0; c < samples_in_all && row.weight > 0; ++c) {
      CHECK(row.weight * row.target[c] == Approx(share[c] * weight_of(c)).margin(1e-5));
      CHECK(row.input[c] == Approx(weight_of(c) > 0 ? share[c] / seen : 0).margin(1e-6));
    }
    damaged += row.weight == 0;
    alone += row.weight > 0 && seen < 0.99F;
  }
  CHECK(damaged > 0);
  CHECK(alone > 0);
}

TEST_CASE("a part of mixed data, and a part of that part, is mixed with its own samples only") {
  const MemoryDataset plain = one_hot();
  const MixupDataset data(plain, 1, samples_in_all);
  const DatasetPart downwards(data, {40, 30, 20, 10, 5, 3}), inner(downwards, 1, 4), upwards(data, {7, 8, 9});
  const auto mixed_with = [](const DatasetPart& part) {
    std::set<std::size_t> seen;
    for (std::uint64_t sample = 0; sample < part.size(); ++sample)
      for (std::uint64_t epoch = 1; epoch < 30; ++epoch) {
        const std::vector<float> target = mixed_row(part, sample, epoch).target;
        for (std::size_t c = 0; c < samples_in_all; ++c)
          if (target[c] > 0) seen.insert(c);
      }
    return seen;
  };
  CHECK(mixed_with(downwards) == std::set<std::size_t>{3, 5, 10, 20, 30, 40});
  CHECK(mixed_with(inner) == std::set<std::size_t>{10, 20, 30});
  CHECK(mixed_with(upwards) == std::set<std::size_t>{7, 8, 9});
}

TEST_CASE("mixup refuses what it cannot mix, changes the fingerprint, and takes nothing from the heap") {
  const MemoryDataset plain = one_hot();
  for (const double bad : {0.0, -1.0, std::nan(""), HUGE_VAL})
    CHECK_THROWS_AS(MixupDataset(plain, bad, 41), InputError);
  CHECK_THROWS_AS(MixupDataset(plain, 1, 0), InputError);
  const MemoryDataset numbers({1, 2}, Shape{1}, std::vector<float>{1, 2}, Shape{1});
  require_mentions(message_of<InputError>([&] { MixupDataset(numbers, 1, 2); }), {"labels", "float32"});
  const MixupDataset few(plain, 1, 40), data(plain, 1, samples_in_all), other(plain, 0.5, samples_in_all);
  require_mentions(message_of<InputError>([&] { mixed_row(few, 40, 0); }), {"sample 40", "label 40", "40 classes"});
  CHECK(data.fingerprint() == MixupDataset(plain, 1, samples_in_all).fingerprint());
  CHECK(std::set{data.fingerprint(), other.fingerprint(), plain.fingerprint()}.size() == 3);
  Batch batch(data.fields(), 3);
  const std::vector<std::uint64_t> samples{3, 1, 4};
  data.read({samples, 1, 7}, batch);
  const long before = test::allocations();
  for (const std::uint64_t epoch : {0, 1, 2, 3}) data.read({samples, epoch, 7}, batch);
  CHECK(test::allocations() == before);
}
