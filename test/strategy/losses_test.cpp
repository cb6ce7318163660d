// Losses and metrics on several ranks are those of one, however the samples are cut.
#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/core/random.hpp>
#include <ronda/data/memory_dataset.hpp>
#include <ronda/layers/layers.hpp>
#include <ronda/optim/make_optimizer.hpp>
#include <ronda/runtime/strategy/mirrored/mirrored_strategy.hpp>

#include "support/catch.hpp"
#include "support/ranks.hpp"
#include "support/toy_data.hpp"

using namespace ronda;
using namespace ronda::test;

namespace losses_test {
namespace {

constexpr std::size_t samples_of_losses = 61;  // the last of four batches of 20 has one sample: ranks stay empty

/// A small model, trained with a loss on all ranks or on one alone.
struct LossRun {
  LossRun(Communicator communicator, const Layer& model, const Loss& loss, const Dataset& data)
      : plan(data.size(), 20, shard_of(communicator)),
        loader(data, SampleOrder(data.size(), 1, true), plan),
        strategy(communicator, model, loss, make_optimizer({.name = "sgd"}), Schedule({.learning_rate = 0.1}),
                 MirroredOptions::for_data(data, plan)) {}
  std::vector<float> parameters() {
    std::vector<float> all;
    for (const auto& p : strategy.parameters())
      for (const float value : to_file(p, p.value)) all.push_back(value);
    return all;
  }
  BatchPlan plan;
  BatchLoader loader;
  MirroredStrategy strategy;
};

std::vector<float> random_inputs(std::size_t count, std::uint64_t stream) {
  const RngKey key(13, Purpose::test, stream);
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = key.uniform(i);
  return values;
}

/// (N, 6) as (N, 2, 3).
class InTwoRows final : public CustomOperation {
 public:
  [[nodiscard]] std::string_view kind() const noexcept override { return "two rows"; }
  [[nodiscard]] Shape output(std::span<const Shape> inputs) const override { return {inputs[0][0], 2, 3}; }
  void forward(const CustomArguments& arguments, const Pass&) const override {
    std::ranges::copy(arguments.input(), arguments.output().begin());
  }
  void backward(const CustomArguments& arguments, const Pass&) const override {
    std::ranges::copy(arguments.output_gradient(), arguments.input_gradient().begin());
  }
};

MemoryDataset numbers_to_predict() {
  return {random_inputs(samples_of_losses * 5, 1), {5}, random_inputs(samples_of_losses * 6, 2), {6}};
}

/// Two labels a sample, of which about a third is ignored; in some batches all of a rank's.
MemoryDataset words_to_predict() {
  const RngKey key(13, Purpose::test, 3);
  std::vector<std::int32_t> labels(samples_of_losses * 2);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    labels[i] = static_cast<std::int32_t>(key.below(4, i)) - 1;
    if (labels[i] < 0) labels[i] = -100;
  }
  return MemoryDataset({{"input", {5}, random_inputs(samples_of_losses * 5, 1)}, {"target", {2}, std::move(labels)}});
}

Sequential model_of_rows() {
  return Sequential(Dense(9), ReLU(), Dense(6),
                    [](Value x, GraphBuilder& b) { return b.apply(std::make_shared<InTwoRows>(), {x}); });
}

void check_alike(const Layer& model, const Loss& loss, const Dataset& data) {
  const Communicator all = world().communicator();
  LossRun one(world().communicator().split(world().rank(), 0), model, loss, data), many(all, model, loss, data);
  for (std::size_t k = 0; k < 2 * one.plan.steps_per_epoch(); ++k) {
    const StepResult a = one.strategy.train_step(one.loader.next()), b = many.strategy.train_step(many.loader.next());
    CHECK(b.weight == Approx(a.weight).epsilon(1e-12));
    CHECK(b.loss == Approx(a.loss).epsilon(1e-5));
  }
  // Sums in another order: a few roundings of 6e-8 a step, in eight steps.
  CHECK(relative_distance(many.parameters(), one.parameters()) < 1e-5);
  CHECK_FALSE(many.strategy.parameter_hash().empty());  // throws where replicas differ
}

}  // namespace

TEST_CASE("each loss trains on any number of ranks what it trains on one") {
  const Sequential numbers(Dense(9), ReLU(), Dense(6));
  const MemoryDataset data = numbers_to_predict();
  check_alike(numbers, MeanSquaredError(), data);
  check_alike(numbers, L1Loss(), data);
  check_alike(numbers, HuberLoss(0.3), data);
  check_alike(numbers, SmoothL1Loss(0.3), data);
  check_alike(numbers, BCEWithLogitsLoss({1, 2, 3, 4, 5, 6}), data);
  const MemoryDataset words = words_to_predict();
  check_alike(model_of_rows(), SoftmaxCrossEntropy(), words);
  check_alike(model_of_rows(), SoftmaxCrossEntropy({.weight = {1, 2.5F, 0.25F}, .label_smoothing = 0.1}), words);
}

TEST_CASE("a step in which no label counts changes nothing, on any number of ranks") {
  const MemoryDataset data(
      {{"input", {5}, random_inputs(20 * 5, 1)}, {"target", {2}, std::vector<std::int32_t>(40, -100)}});
  LossRun run(world().communicator(), model_of_rows(), SoftmaxCrossEntropy(), data);
  const std::vector<float> before = run.parameters();
  const StepResult result = run.strategy.train_step(run.loader.next());
  CHECK((result.weight == 0 && result.loss == 0 && !result.nonfinite));
  CHECK(run.parameters() == before);
}

TEST_CASE("metrics are summed over all ranks, every sample once") {
  const Communicator all = world().communicator();
  const TopKAccuracy top1(1), top2(2);
  const ConfusionMatrix confusion;
  const Perplexity perplexity;
  const MemoryDataset words = words_to_predict();
  const SoftmaxCrossEntropy loss;
  LossRun one(world().communicator().split(world().rank(), 0), model_of_rows(), loss, words),
      many(all, model_of_rows(), loss, words);
  const Evaluation a = one.strategy.evaluate(one.loader, {}, {&top1, &confusion, &perplexity, &top2}),
                   b = many.strategy.evaluate(many.loader, {}, {&top1, &confusion, &perplexity, &top2});
  REQUIRE(b.metrics.size() == 4);
  CHECK(b.metrics[0] == a.metrics[0]);  // quotients of equal whole numbers
  CHECK(b.metrics[1] == a.metrics[1]);
  CHECK(b.metrics[3] == a.metrics[3]);
  CHECK(number_of(b.metrics, "top1") == b.metric);
  CHECK(number_of(b.metrics, "top2") >= b.metric);
  CHECK(number_of(b.metrics, "perplexity") == Approx(std::exp(b.loss)).epsilon(1e-6));
  double right = 0, counted = 0;
  for (std::size_t i = 0; i < 9; ++i) {
    counted += b.metrics[1].values[i];
    if (i % 4 == 0) right += b.metrics[1].values[i];
  }
  CHECK(right / counted == Approx(b.metric));
  BatchLoader first_epoch(words, SampleOrder(words.size(), 1, true), many.plan);
  CHECK(b.loss == many.strategy.evaluate(first_epoch).loss);  // not another one for the metrics' sake
  CHECK_THROWS_AS(number_of(b.metrics, "confusion_matrix"), InputError);
  CHECK_THROWS_AS(number_of(b.metrics, "f1"), InputError);

  const MemoryDataset numbers = numbers_to_predict();
  const R2Score r2;
  const RootMeanSquaredError rmse;
  LossRun few(world().communicator().split(world().rank(), 0), Dense(6), MeanSquaredError(), numbers),
      more(all, Dense(6), MeanSquaredError(), numbers);
  const Evaluation c = few.strategy.evaluate(few.loader, {}, {&r2, &rmse}),
                   d = more.strategy.evaluate(more.loader, {}, {&r2, &rmse});
  CHECK(number_of(d.metrics, "r2") == Approx(number_of(c.metrics, "r2")).epsilon(1e-5));
  CHECK(number_of(d.metrics, "rmse") == Approx(std::sqrt(d.loss)).epsilon(1e-9));
  CHECK_THROWS_AS(more.strategy.evaluate(more.loader, {}, {&top1}), InputError);  // targets are no labels
}

}  // namespace losses_test
