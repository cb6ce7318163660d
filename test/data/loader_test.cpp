#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/data/detail/epoch_samples.hpp>
#include <ronda/data/detail/reader_team.hpp>
#include <ronda/data/loader.hpp>
#include <ronda/data/memory_dataset.hpp>

#include "support/catch.hpp"
#include "support/memory.hpp"
#include "support/message.hpp"

using namespace ronda;

namespace {

/// Sample i is the number i.
MemoryDataset numbers(std::size_t size) {
  std::vector<float> inputs(size);
  std::vector<std::int32_t> labels(size);
  for (std::size_t i = 0; i < size; ++i) inputs[i] = static_cast<float>(labels[i] = static_cast<std::int32_t>(i));
  return {std::move(inputs), Shape{1}, std::move(labels)};
}

std::vector<std::int32_t> real_samples(const Batch& batch) {
  const auto labels = batch.target().as<std::int32_t>();
  return {labels.begin(), labels.begin() + static_cast<std::ptrdiff_t>(batch.real())};
}

/// Cannot be read the first `failures` times.
class Faulty final : public Dataset {
 public:
  explicit Faulty(int failures) : failures_(failures) {}
  [[nodiscard]] std::size_t size() const override { return data_.size(); }
  [[nodiscard]] std::span<const Field> fields() const override { return data_.fields(); }
  void read(const SampleRequest& request, Batch& batch) const override {
    if (failures_.fetch_sub(1) > 0) throw std::runtime_error("the disk is gone");
    data_.read(request, batch);
  }
  [[nodiscard]] std::uint64_t fingerprint() const override { return 0; }

 private:
  MemoryDataset data_ = numbers(10);
  mutable std::atomic<int> failures_;
};

}  // namespace

TEST_CASE("a loader that is dealt other micro-batches gives these from the next step on") {
  const bool prefetch = GENERATE(false, true);
  const MemoryDataset data = numbers(40);
  const BatchPlan equal(40, 12, {0, 2}, 2);
  BatchLoader loader(data, SampleOrder(40, 1, false), equal, prefetch);
  std::size_t step = 0;
  const auto gives = [&](const BatchPlan& plan) {
    for (std::size_t micro = 0; micro < plan.micro_batches(); ++micro) {
      const Range part = plan.part(step, micro);
      std::vector<std::int32_t> expected(part.size());
      std::iota(expected.begin(), expected.end(), static_cast<std::int32_t>(part.begin));
      REQUIRE(real_samples(loader.next()) == expected);
    }
    step = (step + 1) % plan.steps_per_epoch();
  };
  gives(equal);
  for (const std::size_t count : {1U, 3U, 3U, 2U, 1U, 2U}) {
    loader.deal({0, count, 4});
    CHECK(loader.plan().micro_batches() == count);
    gives(equal.dealt({0, count, 4}));
    gives(equal.dealt({0, count, 4}));
  }
  static_cast<void>(loader.next());  // one of two
  CHECK_THROWS_AS(loader.deal({0, 1, 4}), LogicError);
}

TEST_CASE("loaders of all shards give every sample once an epoch, in the order of the plan") {
  const bool prefetch = GENERATE(false, true);
  const MemoryDataset data = numbers(37);
  const SampleOrder order(37, 3, true);
  constexpr std::size_t shards = 3, accumulate = 2;
  for (std::size_t shard = 0; shard < shards; ++shard) {
    const BatchPlan plan(37, 10, {shard, shards}, accumulate);
    BatchLoader loader(data, order, plan, prefetch);
    std::vector<std::uint64_t> samples(37);
    for (std::uint64_t epoch = 1; epoch <= 3; ++epoch) {
      order.write(epoch, samples);
      for (std::size_t step = 0; step < plan.steps_per_epoch(); ++step)
        for (std::size_t micro = 0; micro < accumulate; ++micro) {
          const Range part = plan.part(step, micro);
          const std::vector<std::int32_t> expected(samples.begin() + static_cast<std::ptrdiff_t>(part.begin),
                                                   samples.begin() + static_cast<std::ptrdiff_t>(part.end));
          const Batch& batch = loader.next();
          REQUIRE(real_samples(batch) == expected);
          REQUIRE(batch.first_row() == part.begin - 10 * step);
        }
    }
  }
}

TEST_CASE("a loader that names samples names those of one that gives values, padding included") {
  const bool prefetch = GENERATE(false, true);
  const MemoryDataset data = numbers(23);
  const SampleOrder order(23, 3, true);
  for (std::size_t shard = 0; shard < 3; ++shard) {
    const BatchPlan plan = BatchPlan(23, 10, {shard, 3}, 2).with_capacity(4);
    BatchLoader values(data, order, plan),
        names(data, order, plan, {.prefetch = prefetch, .contents = BatchContents::samples});
    for (int i = 0; i < 40; ++i) {
      if (i == 25)
        for (BatchLoader* loader : {&values, &names}) loader->seek(2, 1);
      const Batch &expected = values.next(), &found = names.next();
      REQUIRE(found.source() == &data);
      REQUIRE(found.real() == expected.real());
      REQUIRE(found.first_row() == expected.first_row());
      REQUIRE(found.request()[0] == expected.real());
      const auto labels = expected.target().as<std::int32_t>();  // sample i is the number i
      REQUIRE(std::vector<std::uint64_t>(labels.begin(), labels.end()) ==
              std::vector<std::uint64_t>(found.request().begin() + 1, found.request().end()));
      REQUIRE(found.input().desc() == expected.input().desc());
      REQUIRE(found.input().empty());
    }
  }
}

TEST_CASE("a batch stays as it is for as long as it is to be kept") {
  const bool prefetch = GENERATE(false, true);
  const std::size_t kept = GENERATE(1, 2, 4);
  const MemoryDataset data = numbers(40);
  const auto context = make_cpu_context(1);
  const BatchPlan plan(40, 3);
  BatchLoader loader(data, SampleOrder(40, 1, true), plan,
                     {.prefetch = prefetch, .kept = kept, .staging = context.get()});
  BatchLoader copied(data, SampleOrder(40, 1, true), plan);
  std::vector<std::pair<const Batch*, std::vector<std::int32_t>>> last;
  for (int i = 0; i < 50; ++i) {
    if (last.size() == kept) last.erase(last.begin());
    const Batch& batch = loader.next();
    REQUIRE(batch.pinned());
    last.emplace_back(&batch, real_samples(copied.next()));
    for (const auto& [each, samples] : last) REQUIRE(real_samples(*each) == samples);
  }
}

TEST_CASE("rows without a sample of their own repeat one, with weight 0") {
  const MemoryDataset data = numbers(5);
  const SampleOrder order(5, 0, false);
  BatchLoader first(data, order, BatchPlan(5, 4, {0, 2}).with_capacity(3)), last(data, order, BatchPlan(5, 4, {0, 2}));
  const Batch& padded = first.next();
  REQUIRE(padded.real() == 2);
  REQUIRE(padded.target().as<std::int32_t>()[2] == 1);
  REQUIRE(padded.weights().as<float>()[1] == 1);
  REQUIRE(padded.weights().as<float>()[2] == 0);
  (void)last.next();
  const Batch& empty = last.next();  // the one sample left is the other shard's
  REQUIRE(empty.real() == 0);
  REQUIRE(empty.target().as<std::int32_t>()[0] == 4);
  REQUIRE(empty.weights().as<float>()[0] == 0);
}

TEST_CASE("an empty shard's batches are one, without samples, that is read once") {
  const bool prefetch = GENERATE(false, true);
  const MemoryDataset data = numbers(10);
  BatchLoader loader(data, SampleOrder(10, 0, false), BatchPlan(10, 4, {2, 2}), {.prefetch = prefetch, .kept = 3});
  const Batch& batch = loader.next();
  for (int i = 0; i < 7; ++i) {
    REQUIRE(&loader.next() == &batch);
    REQUIRE(batch.real() == 0);
    for (const float weight : batch.weights().as<float>()) REQUIRE(weight == 0);
    REQUIRE(batch.target().as<std::int32_t>()[0] == 0);
  }
  loader.seek(5, 2);
  REQUIRE(loader.next().real() == 0);
}

TEST_CASE("a loader goes on from any place") {
  const bool prefetch = GENERATE(false, true);
  const MemoryDataset data = numbers(100);
  const SampleOrder order(100, 1, true);
  const BatchPlan plan(100, 10);
  std::vector<std::vector<std::int32_t>> told;
  BatchLoader whole(data, order, plan, prefetch);
  for (int i = 0; i < 30; ++i) told.push_back(real_samples(whole.next()));

  BatchLoader loader(data, order, plan, prefetch);
  loader.seek(3, 4);
  REQUIRE(real_samples(loader.next()) == told[24]);
  REQUIRE(real_samples(loader.next()) == told[25]);
  loader.seek(3, 6);  // where it is anyway
  REQUIRE(real_samples(loader.next()) == told[26]);
  for (std::size_t i = 0; i < 20; ++i) loader.seek(1 + i % 3, i % 10);
  loader.seek(1, 9);
  REQUIRE(real_samples(loader.next()) == told[9]);
  REQUIRE(real_samples(loader.next()) == told[10]);
}

TEST_CASE("an epoch's end is the next one's beginning, and beyond it is no place") {
  const bool prefetch = GENERATE(false, true);
  const MemoryDataset data = numbers(23);
  const SampleOrder order(23, 1, true);
  const BatchPlan plan(23, 7);
  BatchLoader first(data, order, plan, prefetch), second(data, order, plan, prefetch);
  first.seek(1, plan.steps_per_epoch());
  second.seek(2);
  for (int i = 0; i < 5; ++i) REQUIRE(real_samples(first.next()) == real_samples(second.next()));
  REQUIRE_THROWS_AS(first.seek(1, plan.steps_per_epoch() + 1), LogicError);
  REQUIRE_THROWS_AS(first.seek(0), LogicError);
}

TEST_CASE("a batch stays as it is until the next call") {
  const MemoryDataset data = numbers(1000);
  BatchLoader loader(data, SampleOrder(1000, 1, true), BatchPlan(1000, 10), true);
  for (int i = 0; i < 50; ++i) {
    const Batch& batch = loader.next();
    const auto before = real_samples(batch);
    if (i % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    REQUIRE(real_samples(batch) == before);
  }
}

TEST_CASE("what the dataset throws comes out of next, and the same batch is tried again") {
  const bool prefetch = GENERATE(false, true);
  const Faulty data(2);
  BatchLoader loader(data, SampleOrder(10, 0, false), BatchPlan(10, 4), prefetch);
  REQUIRE_THROWS_WITH(loader.next(), "the disk is gone");
  REQUIRE_THROWS_WITH(loader.next(), "the disk is gone");
  REQUIRE(real_samples(loader.next()) == std::vector<std::int32_t>{0, 1, 2, 3});
}

TEST_CASE("a loader that is not used up ends at once") {
  const MemoryDataset data = numbers(100);
  const Faulty faulty(1000);
  for (int i = 0; i < 50; ++i) {
    BatchLoader unused(data, SampleOrder(100, 1, true), BatchPlan(100, 10), true);
    BatchLoader broken(faulty, SampleOrder(10, 1, true), BatchPlan(10, 10), true);
    BatchLoader used(data, SampleOrder(100, 1, true), BatchPlan(100, 10), true);
    (void)used.next();
  }
}

TEST_CASE("an order that is drawn piece by piece is the one that is drawn at once") {
  for (const std::size_t size : {0U, 1U, 2U, 15U, 16U, 17U, 100U, 1000U})
    for (const std::size_t piece : {1U, 3U, 16U, 40U}) {
      const SampleOrder order(size, 5, true);
      std::vector<std::uint32_t> expected(size), found(size, 7);
      order.write(3, expected);
      std::size_t left = size;
      while (left > 0) {
        const std::size_t before = std::exchange(left, order.write_more(3, found, left, piece));
        REQUIRE(left + std::min(piece, before) <= before);
      }
      REQUIRE(found == expected);
    }
}

TEST_CASE("samples of an epoch are the same whether they are drawn ahead, in part, or not at all") {
  const SampleOrder order(1000, 5, true);
  EpochSamples plain(order), ahead(order, true);
  for (const std::uint64_t epoch : {1U, 2U, 3U, 3U, 5U, 4U, 5U, 6U}) {
    plain.set_epoch(epoch);
    ahead.set_epoch(epoch);
    for (std::size_t i = 0; i < 1000; ++i) REQUIRE(ahead[i] == plain[i]);
    for (std::uint64_t i = 0; i < epoch; ++i) ahead.draw_ahead(300);
  }
}

TEST_CASE("a loader allocates nothing after its first batch") {
  const bool prefetch = GENERATE(false, true);
  const auto contents = GENERATE(BatchContents::values, BatchContents::samples);
  const MemoryDataset data = numbers(100);
  BatchLoader loader(data, SampleOrder(100, 1, true), BatchPlan(100, 10), {.prefetch = prefetch, .contents = contents});
  (void)loader.next();
  const long before = test::allocations();
  for (int i = 0; i < 100; ++i) (void)loader.next();
  const long after = test::allocations();
  REQUIRE(after == before);
}

TEST_CASE("what does not belong together is refused") {
  const MemoryDataset data = numbers(10);
  REQUIRE_THROWS_AS(BatchLoader(data, SampleOrder(11, 1, true), BatchPlan(10, 2)), LogicError);
  REQUIRE_THROWS_AS(BatchLoader(data, SampleOrder(10, 1, true), BatchPlan(9, 2)), LogicError);
}

TEST_CASE("a team of readers does each part once, and throws what the first part that failed threw") {
  for (const std::size_t readers : {1, 2, 5}) {
    ReaderTeam team(readers);
    CHECK(team.readers() == readers);
    std::vector<int> done(100);
    for (const std::size_t count : {0, 1, 7, 100})
      for (int times = 0; times < 20; ++times) {
        std::ranges::fill(done, 0);
        std::vector<int> mine(readers);
        team.run(count, [&](std::size_t reader, std::size_t i) {
          ++done[i];
          ++mine[reader];
        });
        for (std::size_t i = 0; i < done.size(); ++i) REQUIRE(done[i] == (i < count ? 1 : 0));
        REQUIRE(std::accumulate(mine.begin(), mine.end(), std::size_t{0}) == count);
      }
    for (int times = 0; times < 20; ++times)
      CHECK(test::message_of<InputError>([&] {
              team.run(50, [](std::size_t, std::size_t i) {
                if (i % 7 == 3) throw InputError(std::to_string(i));
              });
            }) == "3");
  }
}
