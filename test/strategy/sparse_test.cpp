// Tables with sparse gradients: many ranks do what one rank does, and what whole gradients do.
#include "support/catch.hpp"
#include "support/message.hpp"
#include "support/ranks.hpp"
#include "support/toy_data.hpp"

#include <ronda/core/error.hpp>
#include <ronda/layers/layers.hpp>
#include <ronda/optim/make_optimizer.hpp>
#include <ronda/runtime/strategy/mirrored/mirrored_strategy.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

using namespace ronda;
using namespace ronda::test;

namespace sparse_test {
namespace {

constexpr std::int64_t rows = toy_words, length = toy_text_length;

/// All samples have these tokens.
MemoryDataset equal_texts(std::size_t samples, const std::vector<std::int32_t>& text) {
  std::vector<std::int32_t> tokens, labels;
  for (std::size_t n = 0; n < samples; ++n) {
    tokens.insert(tokens.end(), text.begin(), text.end());
    labels.push_back(static_cast<std::int32_t>(n % 2));
  }
  std::vector<Column> columns;
  columns.push_back({"input", Shape{static_cast<std::int64_t>(text.size())}, std::move(tokens)});
  columns.push_back({"target", Shape{}, std::move(labels)});
  return MemoryDataset(std::move(columns));
}

struct Set {
  std::size_t global_batch = 0, accumulate = 1;
  std::string optimizer = "adam";
  double clip_norm = 0;
  AllreduceAlgorithm algorithm = AllreduceAlgorithm::automatic;
  std::size_t node_update_bytes = std::numeric_limits<std::size_t>::max();
  std::function<ParameterGroup(std::string_view)> group_of = {};
  bool check_gradients = false;
  Picks picks = {};
};

struct Run {
  Sequential model;
  SoftmaxCrossEntropy loss;
  BatchPlan plan;
  BatchLoader loader;
  MirroredStrategy strategy;

  Run(Communicator communicator, Sequential m, const Dataset& data, const Set& set)
      : model(std::move(m)),
        plan(data.size(), set.global_batch, shard_of(communicator), set.accumulate),
        loader(data, SampleOrder(data.size(), 1, true), plan),
        strategy(communicator, model, loss, make_optimizer({.name = set.optimizer}), Schedule({.learning_rate = 0.05}),
                 options(data, set, plan)) {}

  static MirroredOptions options(const Dataset& data, const Set& set, const BatchPlan& plan) {
    MirroredOptions o = MirroredOptions::for_data(data, plan);
    o.clip_norm = set.clip_norm;
    o.check_gradients = set.check_gradients;
    o.fusion.algorithm = set.algorithm;
    o.node_update_bytes = set.node_update_bytes;
    o.group_of = set.group_of;
    o.picks = set.picks;
    return o;
  }
  StepResult step() {
    for (std::size_t i = 0; i + 1 < plan.micro_batches(); ++i) strategy.accumulate(loader.next());
    return strategy.train_step(loader.next());
  }
  StepResult step_by_hand() {
    for (std::size_t i = 0; i + 1 < plan.micro_batches(); ++i) strategy.accumulate(loader.next());
    const Batch& batch = loader.next();
    const Pass pass = strategy.begin_pass(batch);
    strategy.forward(batch, pass);
    strategy.loss(batch, pass);
    strategy.backward(pass);
    return strategy.apply(strategy.reduce(pass), pass);
  }
  std::vector<float> parameters() {
    std::vector<float> all;
    for (const auto& p : strategy.parameters()) {
      const auto values = to_file(p, p.value);
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }
  std::vector<float> gradient() {
    const auto gradient = strategy.parameters()[0].gradient.as<float>();
    return {gradient.begin(), gradient.end()};
  }
};

Sequential bags(bool sparse = true) {
  return Sequential(EmbeddingBag(rows, 6, BagMode::mean, {.sparse = sparse}), Dense(9), ReLU(), Dense(2));
}
Sequential words(bool sparse = true) {
  return Sequential(Embedding(rows, 3, {.padding = 0, .sparse = sparse}), Flatten(), Dense(2));
}
/// A table read as a bag twice, and another one.
Sequential tied(bool sparse = true) {
  const EmbeddingBag table(rows, 4, BagMode::sum, {.sparse = sparse}),
      other(rows, 7, BagMode::mean, {.sparse = sparse});
  return Sequential(Function([=](Value x, GraphBuilder& b) {
                      return b.apply(ConcatSpec{1}, {table.build(x, b), other.build(x, b), table.build(x, b)});
                    }),
                    Dense(2));
}

Communicator everybody() { return world().communicator(); }
Communicator alone() { return world().communicator().split(world().rank(), 0); }

/// Tokens of `toy_texts` without -1, which `words` does not take.
MemoryDataset padded_with_zero(std::size_t samples) {
  const RngKey draw(6, Purpose::test, "texts");
  std::vector<std::int32_t> tokens, labels;
  for (std::size_t i = 0; i < samples * length; ++i) tokens.push_back(static_cast<std::int32_t>(draw.below(rows, i)));
  for (std::size_t n = 0; n < samples; ++n) labels.push_back(tokens[n * length] % 2);
  std::vector<Column> columns;
  columns.push_back({"input", Shape{length}, std::move(tokens)});
  columns.push_back({"target", Shape{}, std::move(labels)});
  return MemoryDataset(std::move(columns));
}

}  // namespace

TEST_CASE("any number of ranks trains the tables that one rank trains") {
  const MemoryDataset texts = toy_texts(62),
                      zero_padded = padded_with_zero(62);  // batches of 20: the last has 2 samples
  struct Case {
    Sequential model;
    const Dataset& data;
  };
  for (const Case& c : {Case{bags(), texts}, Case{words(), zero_padded}, Case{tied(), texts}})
    for (const char* optimizer : {"sgd", "nesterov", "adam"})
      for (const bool by_parts : {false, true}) {
        Set set{.global_batch = 20, .optimizer = optimizer};
        set.algorithm = by_parts ? AllreduceAlgorithm::automatic : AllreduceAlgorithm::ring;
        if (by_parts) set.node_update_bytes = 0;
        Run one(alone(), c.model, c.data, set), many(everybody(), c.model, c.data, set);
        for (std::size_t k = 0; k < 2 * one.plan.steps_per_epoch(); ++k) {
          const StepResult a = one.step(), b = many.step();
          CHECK(b.weight == a.weight);
          CHECK(b.loss == Approx(a.loss).epsilon(1e-4));
        }
        CHECK(relative_distance(many.parameters(), one.parameters()) < 1e-4);  // sums in another order
        CHECK_FALSE(many.strategy.parameter_hash().empty());                   // throws where replicas differ
      }
}

TEST_CASE("sparse gradients are whole ones, where the rule leaves rows without gradient alone") {
  const MemoryDataset texts = toy_texts(62), zero_padded = padded_with_zero(62);
  struct Case {
    Sequential sparse, whole;
    const Dataset& data;
  };
  for (const Case& c :
       {Case{bags(), bags(false), texts}, Case{words(), words(false), zero_padded}, Case{tied(), tied(false), texts}})
    for (const double clip : {0.0, 0.1})
      for (const std::size_t accumulate : {1, 3}) {
        const Set set{.global_batch = 20, .accumulate = accumulate, .optimizer = "sgd", .clip_norm = clip};
        Run sparse(everybody(), c.sparse, c.data, set), whole(everybody(), c.whole, c.data, set);
        CHECK(whole.strategy.plan_hash() != sparse.strategy.plan_hash());
        for (std::size_t k = 0; k < 2 * sparse.plan.steps_per_epoch(); ++k) {
          const StepResult a = whole.step(), b = sparse.step();
          CHECK(b.loss == Approx(a.loss).epsilon(1e-5));
          CHECK(b.gradient_norm == Approx(a.gradient_norm).epsilon(1e-4));
        }
        CHECK(relative_distance(sparse.parameters(), whole.parameters()) < 1e-5);  // sums in another order
      }
}

TEST_CASE("a table that another operation reads too has a whole gradient") {
  const MemoryDataset data = toy_texts(40);
  const EmbeddingBag table(rows, 6);
  const Sequential model(Function([=](Value x, GraphBuilder& b) {
                           const Value bag = table.build(x, b);
                           return b.apply(DenseSpec{rows, false}, {bag}, {b.parameter(table, "weight", {rows, 6})});
                         }),
                         Dense(2));
  const Set set{.global_batch = 20};
  Run one(alone(), model, data, set), many(everybody(), model, data, set);
  CHECK(many.strategy.parameters()[0].touched == nullptr);
  for (int k = 0; k < 4; ++k) one.step(), many.step();
  CHECK(relative_distance(many.parameters(), one.parameters()) < 1e-4);
}

TEST_CASE("rows that no sample names keep their values, and reduce returns whole gradients") {
  for (const std::vector<std::int32_t>& text :
       {std::vector<std::int32_t>{7}, {7, 7, 7}, {0, 39, 20, -1}, {-1, -1}, {3, 1, 4, 15, 9, 2, 6, 5, 35, 8}}) {
    const MemoryDataset data = equal_texts(7, text);
    Run run(everybody(), bags(), data, {.global_batch = 7});
    const auto before = run.parameters();
    const Batch& batch = run.loader.next();
    const Pass pass = run.strategy.begin_pass(batch);
    run.strategy.forward(batch, pass);
    run.strategy.loss(batch, pass);
    run.strategy.backward(pass);
    const StepControl& total = run.strategy.reduce(pass);
    const auto gradient = run.gradient();
    auto sums = gradient;  // the same on all ranks
    everybody().broadcast(Tensor(std::span(sums)));
    CHECK(sums == gradient);
    run.strategy.apply(total, pass);
    const auto after = run.parameters();
    for (std::int32_t row = 0; row < rows; ++row) {
      const bool named = std::ranges::find(text, row) != text.end();
      for (std::size_t i = 0; i < 6; ++i) {
        const std::size_t at = static_cast<std::size_t>(row) * 6 + i;
        if (!named) REQUIRE(gradient[at] == 0);
        REQUIRE((after[at] != before[at]) == (gradient[at] != 0));
      }
    }
    for (int k = 0; k < 3; ++k) run.step();
    CHECK_FALSE(run.strategy.parameter_hash().empty());
  }
}

TEST_CASE("steps with sparse tables by hand, and by parts, give the bits of train_step") {
  const MemoryDataset data = toy_texts(62);
  for (const std::size_t accumulate : {1, 2}) {
    Set set{.global_batch = 20, .accumulate = accumulate};
    Run whole(everybody(), bags(), data, set);
    set.picks = whole.strategy.picks();
    Run by_hand(everybody(), bags(), data, set);
    set.node_update_bytes = 0;
    Run by_parts(everybody(), bags(), data, set);
    for (int k = 0; k < 6; ++k) whole.step(), by_hand.step_by_hand(), by_parts.step();
    CHECK(by_hand.strategy.parameter_hash() == whole.strategy.parameter_hash());
    CHECK(by_parts.strategy.parameter_hash() == whole.strategy.parameter_hash());
  }
}

TEST_CASE("a frozen table stays, and rules that need norms refuse a sparse one") {
  const MemoryDataset data = toy_texts(40);
  Run run(everybody(), bags(), data, {.global_batch = 20, .group_of = [](std::string_view name) {
                                        return ParameterGroup{.frozen = name.starts_with("embedding")};
                                      }});
  const auto before = run.parameters();
  for (int k = 0; k < 4; ++k) run.step();
  const auto after = run.parameters();
  CHECK(std::equal(before.begin(), before.begin() + rows * 6, after.begin()));
  CHECK(before != after);
  require_mentions(
      message_of<InputError>([&] { Run(everybody(), bags(), data, {.global_batch = 20, .optimizer = "lars"}); }),
      {"lars", "embedding_bag1.weight", ".sparse = false"});
}

TEST_CASE("a touched row that is not finite is seen, and told of") {
  const MemoryDataset data = equal_texts(8, {3, 5});
  Set set{.global_batch = 8, .check_gradients = true};
  set.group_of = [](std::string_view name) { return ParameterGroup{.frozen = name.starts_with("dense")}; };
  Run run(everybody(), bags(), data, set);  // frozen parameters are not looked at
  const auto before = run.parameters();
  const Batch& batch = run.loader.next();
  const Pass pass = run.strategy.begin_pass(batch);
  run.strategy.forward(batch, pass);
  const Tensor& gradient = run.strategy.loss(batch, pass);
  if (world().rank() == world().size() - 1) gradient.as<float>()[0] = std::numeric_limits<float>::infinity();
  run.strategy.backward(pass);
  CHECK(run.strategy.apply(run.strategy.reduce(pass), pass).nonfinite);
  CHECK(run.parameters() == before);
  require_mentions(run.strategy.explain_nonfinite(batch), {"each rank's own are finite"});  // without this test's hand
  CHECK_FALSE(run.step().nonfinite);                                                        // nothing of it is left
  CHECK(run.parameters() != before);
}

TEST_CASE("the rows that travel are counted") {
  const MemoryDataset data = equal_texts(8, {3, 5});
  for (const auto algorithm : {AllreduceAlgorithm::automatic, AllreduceAlgorithm::ring}) {
    Set set{.global_batch = 8};
    set.algorithm = algorithm;
    Run run(everybody(), bags(), data, set);
    for (int k = 0; k < 3; ++k) run.step();
    const bool messages = std::ranges::any_of(run.strategy.plan_lines(), [](const std::string& line) {
      return line == "touched rows of embedding_bag1.weight by owners";
    });
    const bool one_node = world().size() > 1 && everybody().topology().nodes == 1;
    CHECK(messages == !(one_node && algorithm == AllreduceAlgorithm::automatic));
    const auto ranks = static_cast<double>(world().size()), row_bytes = 4.0 + 6 * 4;
    double sent = run.strategy.exchange().report().sparse_bytes_per_step;
    everybody().allreduce(Tensor(std::span(&sent, 1)));
    // Each of two rows goes once to its owner from all others, and back; two counts go between any two ranks.
    CHECK(sent == 2 * (ranks - 1) * (2 * row_bytes) + (messages ? 2 * ranks * (ranks - 1) * 4 : 0));
  }
}

}  // namespace sparse_test
