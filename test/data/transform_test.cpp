// Samples that are changed at random: the same on any number of ranks, in any batch, after any restart.
#include <cmath>
#include <map>
#include <stdexcept>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/data/loader.hpp>
#include <ronda/data/memory_dataset.hpp>
#include <ronda/data/transform.hpp>

#include "support/allocations.hpp"
#include "support/catch.hpp"
#include "support/message.hpp"

using namespace ronda;
using test::message_of;
using test::require_mentions;

namespace {

constexpr std::size_t size = 37;
const Shape shape{5, 4, 3};
using Pixels = std::vector<float>;

/// No two pixels of all samples are equal, and none is 0.
MemoryDataset images() {
  std::vector<float> inputs(size * static_cast<std::size_t>(shape.count()));
  for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i] = static_cast<float>(i + 1);
  std::vector<std::int32_t> labels(size);
  for (std::size_t i = 0; i < size; ++i) labels[i] = static_cast<std::int32_t>(i);
  return {std::move(inputs), shape, std::move(labels)};
}

std::vector<Transform> both() { return {random_flip(), random_shift(2)}; }

Pixels pixels_of(const Batch& batch, std::size_t row) {
  const Tensor image = SampleRow(batch, row).field("input");
  const auto values = image.as<const float>();
  return {values.begin(), values.end()};
}

Pixels read_one(const Dataset& data, std::uint64_t sample, std::uint64_t epoch, std::uint64_t seed = 7) {
  Batch batch(data.fields(), 1);
  const std::vector<std::uint64_t> samples{sample};
  data.read({samples, epoch, seed}, batch);
  return pixels_of(batch, 0);
}

}  // namespace

TEST_CASE("a sample is changed alike on any number of ranks, in any batch, read ahead or not, and after a restart") {
  const MemoryDataset plain = images();
  const TransformedDataset data(plain, both());
  std::map<std::uint64_t, std::vector<Pixels>> expected;  // by epoch and sample
  for (const std::uint64_t epoch : {1, 2, 3})
    for (std::uint64_t sample = 0; sample < size; ++sample) expected[epoch].push_back(read_one(data, sample, epoch));
  CHECK(expected[1] != expected[2]);
  for (const std::size_t shards : {1, 2, 3, 4})
    for (const std::size_t accumulate : {1, 2})
      for (const bool prefetch : {false, true}) {
        std::size_t seen = 0;
        for (std::size_t shard = 0; shard < shards; ++shard) {
          const BatchPlan plan(size, 10, {shard, shards}, accumulate);
          BatchLoader loader(data, SampleOrder(size, 7, true), plan, prefetch);
          loader.seek(2, 1);  // as a training that goes on
          for (std::size_t step = 1; step < 2 * plan.steps_per_epoch(); ++step)
            for (std::size_t micro = 0; micro < accumulate; ++micro) {
              const Batch& batch = loader.next();
              const std::uint64_t epoch = step < plan.steps_per_epoch() ? 2 : 3;
              const auto labels = batch.target().as<const std::int32_t>();
              for (std::size_t row = 0; row < batch.capacity(); ++row)  // padding repeats a sample
                REQUIRE(pixels_of(batch, row) == expected[epoch][static_cast<std::size_t>(labels[row])]);
              seen += batch.real();
            }
        }
        CHECK(seen == 2 * size - 10);
      }
}

TEST_CASE(
    "an evaluation, and a loader that is told so, read samples as they are; another seed changes them otherwise") {
  const MemoryDataset plain = images();
  const TransformedDataset data(plain, both());
  bool differs = false;
  for (std::uint64_t sample = 0; sample < size; ++sample) {
    CHECK(read_one(data, sample, 0) == read_one(plain, sample, 0));
    CHECK(read_one(plain, sample, 5) == read_one(plain, sample, 0));
    differs = differs || read_one(data, sample, 1, 7) != read_one(data, sample, 1, 8);
  }
  CHECK(differs);
  BatchLoader loader(data, SampleOrder(size, 0, false), BatchPlan(size, 10), LoaderOptions{.varies = false});
  const Batch& batch = loader.next();
  for (std::size_t row = 0; row < batch.real(); ++row) CHECK(pixels_of(batch, row) == read_one(plain, row, 0));
}

TEST_CASE("a flip is a mirror image, and half of the samples are flipped") {
  const MemoryDataset plain = images();
  const TransformedDataset always(plain, {random_flip(1)}), never(plain, {random_flip(0)}),
      half(plain, {random_flip()});
  int flipped = 0;
  for (std::uint64_t sample = 0; sample < size; ++sample) {
    const Pixels before = read_one(plain, sample, 1), after = read_one(always, sample, 1);
    CHECK(read_one(never, sample, 1) == before);
    for (std::size_t y = 0; y < 5; ++y)
      for (std::size_t x = 0; x < 4; ++x)
        for (std::size_t c = 0; c < 3; ++c) REQUIRE(after[(y * 4 + x) * 3 + c] == before[(y * 4 + 3 - x) * 3 + c]);
    for (const std::uint64_t epoch : {1, 2, 3, 4}) flipped += read_one(half, sample, epoch) == after ? 1 : 0;
  }
  CHECK(flipped > 45);  // of 148: 74, and 4.8 standard deviations of 6.1 less
  CHECK(flipped < 103);
}

TEST_CASE("a shift moves all pixels alike, and what comes in is zero; every shift happens") {
  const MemoryDataset plain = images();
  for (const std::int64_t most : {0, 1, 2, 9}) {
    const TransformedDataset data(plain, {random_shift(most)});
    std::map<std::pair<int, int>, int> found;
    for (std::uint64_t sample = 0; sample < size; ++sample)
      for (const std::uint64_t epoch : {1, 2, 3, 4, 5, 6}) {
        const Pixels before = read_one(plain, sample, 0), after = read_one(data, sample, epoch);
        const auto shifted = [&](int dy, int dx) {
          Pixels result(before.size());
          for (int y = 0; y < 5; ++y)
            for (int x = 0; x < 4; ++x)
              for (int c = 0; c < 3; ++c) {
                const int from_y = y - dy, from_x = x - dx;
                if (from_y >= 0 && from_y < 5 && from_x >= 0 && from_x < 4)
                  result[static_cast<std::size_t>((y * 4 + x) * 3 + c)] =
                      before[static_cast<std::size_t>((from_y * 4 + from_x) * 3 + c)];
              }
          return result;
        };
        int matches = 0;
        const int limit = static_cast<int>(most);
        for (int dy = -limit; dy <= limit; ++dy)
          for (int dx = -limit; dx <= limit; ++dx)
            if (after == shifted(dy, dx)) {
              ++matches;
              ++found[{dy, dx}];
            }
        REQUIRE(matches > 0);
      }
    if (most <= 2) CHECK(found.size() == static_cast<std::size_t>((2 * most + 1) * (2 * most + 1)));
  }
}

TEST_CASE("one more transform changes nothing of the others' random numbers; one given twice draws anew") {
  const MemoryDataset plain = images();
  const TransformedDataset flipped(plain, {random_flip()}), after(plain, {random_shift(0), random_flip()}),
      twice(plain, {random_flip(), random_flip()});
  bool differs = false;
  for (std::uint64_t sample = 0; sample < size; ++sample) {
    CHECK(read_one(flipped, sample, 3) == read_one(after, sample, 3));
    differs = differs || read_one(twice, sample, 3) != read_one(plain, sample, 3);
  }
  CHECK(differs);  // otherwise both would always flip together
  CHECK(flipped.fingerprint() != after.fingerprint());
  CHECK(flipped.fingerprint() != plain.fingerprint());
  CHECK(flipped.stored().empty());
}

TEST_CASE("what a transform cannot change is one message that names it; parameters are looked at when it is made") {
  const MemoryDataset plain = images();
  const TransformedDataset throwing(
      plain, {random_flip(), {"mine", [](const SampleRow&, const RngKey&) { throw std::runtime_error("no"); }}});
  require_mentions(message_of<InputError>([&] { read_one(throwing, 3, 4); }), {"mine", "sample 3", "epoch 4", "no"});
  const MemoryDataset vectors(std::vector<float>(6), Shape{3}, std::vector<std::int32_t>{0, 1});
  const TransformedDataset flat(vectors, {random_flip()});
  require_mentions(message_of<InputError>([&] {
                     Batch batch(flat.fields(), 1);
                     const std::vector<std::uint64_t> samples{1};
                     flat.read({samples, 1, 1}, batch);
                   }),
                   {"random_flip(0.5)", "sample 1", "(height, width, channels)", "(3)"});
  REQUIRE_THROWS_AS(random_flip(1.5), InputError);
  REQUIRE_THROWS_AS(random_flip(std::nan("")), InputError);
  REQUIRE_THROWS_AS(random_shift(-1), InputError);
  REQUIRE_THROWS_AS(random_shift(std::int64_t{1} << 40), InputError);
  REQUIRE_THROWS_AS(TransformedDataset(plain, {{"nothing", nullptr}}), InputError);
  Batch none(plain.fields(), 1);
  TransformedDataset(plain, both()).read({{}, 1, 1}, none);  // no sample: nothing to do
}

TEST_CASE("changing samples takes nothing from the heap") {
  const MemoryDataset plain = images();
  const TransformedDataset data(plain, both());
  Batch batch(data.fields(), 10);
  const std::vector<std::uint64_t> samples{3, 1, 4, 1, 5, 9, 2, 6, 5, 3};
  data.read({samples, 1, 7}, batch);
  const long before = test::allocations();
  for (const std::uint64_t epoch : {0, 1, 2, 3}) data.read({samples, epoch, 7}, batch);
  CHECK(test::allocations() == before);
}
