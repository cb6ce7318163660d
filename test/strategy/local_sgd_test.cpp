// Ranks that make steps of their own and synchronise now and then: against plain loops that simulate all ranks in one
// program; equal bits after a synchronisation; what travels, and when.
#include "strategy/device_run.hpp"
#include "strategy/step_by_hand.hpp"
#include "support/catch.hpp"
#include "support/message.hpp"
#include "support/ranks.hpp"
#include "support/toy_data.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <ronda/core/error.hpp>

using namespace ronda;
using namespace ronda::test;

namespace local_sgd_test {
namespace {

using Numbers = std::vector<double>;

constexpr std::size_t pixels = 63, classes = 4;

MemoryDataset images(std::size_t samples) { return toy_images(samples, {9, 7, 1}, static_cast<std::int32_t>(classes)); }
Sequential one_layer() { return Sequential(Flatten(), Dense(static_cast<std::int64_t>(classes))); }

/// Softmax regression on all ranks' parts of the batches, in plain loops: sgd inside, the outer optimizer's formula.
class Simulation {
 public:
  Simulation(const Dataset& data, std::size_t global_batch, std::size_t ranks, const LocalSgd& options,
             const std::vector<float>& first)
      : options_(options), shared_(first.begin(), first.end()), momentum_(first.size()), own_(ranks, shared_) {
    for (std::size_t rank = 0; rank < ranks; ++rank)
      loaders_.push_back(std::make_unique<BatchLoader>(data, SampleOrder(data.size(), 1, true),
                                                       BatchPlan(data.size(), global_batch, Shard{rank, ranks})));
  }
  void step(double rate) {
    for (std::size_t rank = 0; rank < own_.size(); ++rank) step(own_[rank], loaders_[rank]->next(), rate);
    ++steps_;
    if (options_.fragments == 2) return fragments();
    if (steps_ % options_.synchronise_every == 0) synchronise();
  }
  void synchronise() {
    for (Travelling& each : travelling_) apply(each);
    travelling_.clear();
    apply(measured({0, shared_.size()}));
    own_.assign(own_.size(), shared_);
  }
  [[nodiscard]] const Numbers& parameters() const { return shared_; }

 private:
  /// Changes that were measured after a step.
  struct Travelling {
    Range part;
    std::uint64_t step;
    Numbers change;
    std::vector<Numbers> started;
  };
  [[nodiscard]] Travelling measured(Range part) const {
    Travelling each{part, steps_, Numbers(shared_.size()), own_};
    for (std::size_t i = part.begin; i < part.end; ++i)
      for (const Numbers& own : own_) each.change[i] += (shared_[i] - own[i]) / static_cast<double>(own_.size());
    return each;
  }
  void apply(const Travelling& each) {
    for (std::size_t i = each.part.begin; i < each.part.end; ++i) {
      momentum_[i] = options_.momentum() * momentum_[i] + each.change[i];
      shared_[i] -= options_.rate() * (each.change[i] + options_.momentum() * momentum_[i]);
      for (std::size_t rank = 0; rank < own_.size(); ++rank)
        own_[rank][i] = shared_[i] + (own_[rank][i] - each.started[rank][i]);
    }
  }
  /// The biases, in the middle of a period, and the weights at its end.
  void fragments() {
    while (!travelling_.empty() && travelling_.front().step + options_.fragment_delay == steps_) {
      apply(travelling_.front());
      travelling_.erase(travelling_.begin());
    }
    const std::uint64_t place = steps_ % options_.synchronise_every;
    if (place == options_.synchronise_every / 2)
      travelling_.push_back(measured({classes * pixels, shared_.size()}));
    else if (place == 0)
      travelling_.push_back(measured({0, classes * pixels}));
  }
  /// Weights (classes, pixels), then biases.
  static void step(Numbers& parameters, const Batch& batch, double rate) {
    Numbers gradient(parameters.size());
    for (std::size_t row = 0; row < batch.real(); ++row) {
      const float* const input = batch.input().pointer<float>() + row * pixels;
      Numbers outputs(parameters.end() - classes, parameters.end());
      for (std::size_t c = 0; c < classes; ++c)
        for (std::size_t i = 0; i < pixels; ++i) outputs[c] += parameters[c * pixels + i] * input[i];
      double sum = 0;
      for (double& output : outputs) sum += output = std::exp(output);
      for (std::size_t c = 0; c < classes; ++c) {
        const auto right = static_cast<std::size_t>(batch.target().pointer<std::int32_t>()[row]);
        const double error = (outputs[c] / sum - (c == right ? 1 : 0)) / static_cast<double>(batch.real());
        for (std::size_t i = 0; i < pixels; ++i) gradient[c * pixels + i] += error * input[i];
        gradient[classes * pixels + c] += error;
      }
    }
    for (std::size_t i = 0; i < gradient.size(); ++i) parameters[i] -= rate * gradient[i];
  }

  LocalSgd options_;
  Numbers shared_, momentum_;
  std::vector<Numbers> own_;
  std::vector<Travelling> travelling_;
  std::vector<std::unique_ptr<BatchLoader>> loaders_;
  std::uint64_t steps_ = 0;
};

DeviceSet local_set(const LocalSgd& options, AllreduceAlgorithm algorithm = AllreduceAlgorithm::automatic) {
  return {.global_batch = 50, .optimizer = "sgd", .strategy = options, .algorithm = algorithm};
}

double distance(const std::vector<float>& a, const Numbers& b) {
  return relative_distance(a, std::vector<float>(b.begin(), b.end()));
}

bool equal_on_ranks(const std::vector<float>& numbers) {
  const std::string mine(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float));
  return everybody().broadcast_text(mine) == mine;
}

bool on_all_ranks(bool mine) {
  std::int32_t all = mine ? 1 : 0;
  everybody().allreduce(Tensor(std::span(&all, 1)), ReduceOp::minimum);
  return all != 0;
}

std::string local_refusal(const LocalSgd& options, Sequential model = mlp(), DeviceSet set = {}) {
  const MemoryDataset data = images(64);
  set.strategy = options;
  return message_of<InputError>([&] { DeviceRun(everybody(), nullptr, std::move(model), data, set); });
}

}  // namespace

TEST_CASE("local steps and both outer optimizers compute what plain loops do, in a node's memory and by a ring") {
  const MemoryDataset data = images(131);  // the last batch of an epoch is ragged
  const LocalSgd some[] = {
      {.synchronise_every = 1},
      {.synchronise_every = 4},
      {.synchronise_every = 4, .outer_optimizer = OuterOptimizer::nesterov},
      {.synchronise_every = 3, .outer_optimizer = OuterOptimizer::nesterov, .outer_rate = 0.5, .outer_momentum = 0.0}};
  for (const AllreduceAlgorithm algorithm : {AllreduceAlgorithm::automatic, AllreduceAlgorithm::ring})
    for (const LocalSgd& options : some) {
      INFO(name_of(options.outer_optimizer) << " every " << options.synchronise_every << " by " << name_of(algorithm));
      DeviceRun run(everybody(), nullptr, one_layer(), data, local_set(options, algorithm));
      Simulation expected(data, 50, static_cast<std::size_t>(world().size()), options, run.parameters());
      for (std::uint64_t step = 1; step <= 12; ++step) {
        expected.step(run.step().learning_rate);
        if (step % options.synchronise_every != 0) continue;
        CHECK(equal_on_ranks(run.parameters()));
        CHECK(distance(run.parameters(), expected.parameters()) < 1e-5);
      }
    }
}

TEST_CASE("fragments synchronise each at its own time, and are applied so many steps later") {
  const MemoryDataset data = images(131);
  for (const AllreduceAlgorithm algorithm : {AllreduceAlgorithm::automatic, AllreduceAlgorithm::ring})
    for (const std::uint64_t delay : {1, 2, 5})
      for (const OuterOptimizer outer : {OuterOptimizer::average, OuterOptimizer::nesterov}) {
        INFO(name_of(outer) << " after " << delay << " by " << name_of(algorithm));
        const LocalSgd options{
            .synchronise_every = 6, .outer_optimizer = outer, .fragments = 2, .fragment_delay = delay};
        DeviceRun run(everybody(), nullptr, one_layer(), data, local_set(options, algorithm));
        Simulation expected(data, 50, static_cast<std::size_t>(world().size()), options, run.parameters());
        double weight = 0;
        for (std::uint64_t step = 1; step <= 19; ++step) {
          if (step == 19) run.strategy.synchronise_next();
          const StepResult result = run.step();
          expected.step(result.learning_rate);
          weight += result.weight;
        }
        expected.synchronise();
        CHECK(equal_on_ranks(run.parameters()));
        CHECK(distance(run.parameters(), expected.parameters()) < 1e-5);
        CHECK(weight == 19 / 3 * 131 + 50);  // every sample is told of once
        CHECK(run.strategy.exchange().report().synchronisations.count == 7);
      }
}

TEST_CASE("evaluation in the middle of a period has all fragments, and no sample is forgotten") {
  const MemoryDataset data = images(400);
  DeviceRun run(everybody(), nullptr, mlp(), data,
                local_set({.synchronise_every = 4, .fragments = 2, .fragment_delay = 3}));
  double weight = 0;
  for (int k = 0; k < 5; ++k) weight += run.step().weight;
  run.strategy.state().average_states();
  CHECK_FALSE(run.strategy.parameter_hash().empty());
  for (int k = 0; k < 2; ++k) weight += run.step().weight;
  run.strategy.synchronise_next();
  weight += run.step().weight;
  CHECK(weight == 400);
}

TEST_CASE("synchronised in each step by their average, replicas are mirrored ones, to rounding") {
  const MemoryDataset data = images(120);
  const auto ranks = static_cast<std::size_t>(world().size());
  DeviceSet set = local_set({.synchronise_every = 1});
  set.global_batch = 12 * ranks;  // equal shares
  DeviceSet mirrored = set;
  mirrored.strategy = Mirrored();
  DeviceRun a(everybody(), nullptr, mlp(), data, set), b(everybody(), nullptr, mlp(), data, mirrored);
  for (int k = 0; k < 2; ++k) {
    const StepResult here = a.step(), there = b.step();
    CHECK(here.loss == Approx(there.loss));
    CHECK(here.weight == there.weight);
  }
  CHECK(relative_distance(a.parameters(), b.parameters()) < 1e-5);
}

TEST_CASE("between two synchronisations ranks differ and tell nothing; then all know the sums of all steps") {
  const MemoryDataset data = images(400);
  DeviceRun run(everybody(), nullptr, mlp(), data, local_set({.synchronise_every = 5}));
  CHECK(run.step().weight == 50);  // once at the start, for something to show
  for (int k = 2; k < 5; ++k) CHECK(run.step().weight == 0);
  CHECK(on_all_ranks(equal_on_ranks(run.parameters())) == (world().size() == 1));
  CHECK(run.step().weight == 200);
  CHECK(on_all_ranks(equal_on_ranks(run.parameters())));
}

TEST_CASE("a synchronisation that is asked for comes after the next step, and the count begins anew") {
  const MemoryDataset data = images(400);
  DeviceRun run(everybody(), nullptr, mlp(), data, local_set({.synchronise_every = 4}));
  run.steps(1);
  run.strategy.synchronise_next();
  CHECK(run.step().weight == 50);
  CHECK(on_all_ranks(equal_on_ranks(run.parameters())));
  for (int k = 0; k < 3; ++k) CHECK(run.step().weight == 0);
  CHECK(run.step().weight == 200);
}

TEST_CASE("what a rank raises reaches the others at the next synchronisation, once") {
  const MemoryDataset data = images(400);
  DeviceRun run(everybody(), nullptr, mlp(), data, local_set({.synchronise_every = 4}));
  run.steps(1);
  if (world().rank() + 1 == world().size()) run.strategy.request_stop();
  CHECK_FALSE(run.step().stop);
  run.strategy.raise({});
  CHECK_FALSE(run.step().stop);
  CHECK(run.step().stop);
  for (int k = 0; k < 4; ++k) CHECK_FALSE(run.step().stop);
}

TEST_CASE("evaluation and saving make replicas equal, their averages and the optimizer's states too") {
  const MemoryDataset data = images(400);
  DeviceSet set = local_set({.synchronise_every = 100});
  set.optimizer = "adam";
  set.ema_decay = 0.9;
  DeviceRun run(everybody(), nullptr, mlp(), data, set);
  const auto all_equal = [&] {
    struct Reader final : StateVisitor {
      void visit(const State& state) override {
        if (state.scope != Scope::replicated) return;
        const auto numbers = to_file(state);
        equal = on_all_ranks(equal_on_ranks(numbers)) && equal;
      }
      bool equal = true;
    } reader;
    run.strategy.visit(reader);
    return reader.equal;
  };
  run.steps(3);
  CHECK(all_equal() == (world().size() == 1));
  run.strategy.evaluate(run.loader);
  CHECK_FALSE(run.strategy.parameter_hash().empty());
  run.steps(3);
  run.strategy.state().gather_state();
  CHECK(all_equal());
}

TEST_CASE("after so many mirrored steps replicas go on by themselves") {
  const MemoryDataset data = images(400);
  DeviceSet set = local_set({.synchronise_every = 3, .local_after = 4});
  DeviceSet mirrored = set;
  mirrored.strategy = Mirrored();
  DeviceRun a(everybody(), nullptr, mlp(), data, set), b(everybody(), nullptr, mlp(), data, mirrored);
  for (int k = 0; k < 4; ++k) {
    const StepResult here = a.step(), there = b.step();
    CHECK(here.loss == there.loss);
    CHECK(here.weight == 50);
  }
  CHECK(a.parameters() == b.parameters());
  for (int k = 0; k < 2; ++k) CHECK(a.step().weight == 0);
  CHECK(a.step().weight == 150);
}

TEST_CASE("clipping is of the rank's own gradient, accumulation and steps by hand work") {
  const MemoryDataset data = images(400);
  DeviceSet set = local_set({.synchronise_every = 3});
  set.clip_norm = 0.1;
  DeviceRun run(everybody(), nullptr, mlp(), data, set), by_hand(everybody(), nullptr, mlp(), data, set);
  for (int k = 0; k < 6; ++k) {
    CHECK(run.step().gradient_norm > 0.1);
    step_by_hand(by_hand.strategy, by_hand.loader.next());
  }
  CHECK(by_hand.strategy.parameter_hash() == run.strategy.parameter_hash());
  set.clip_norm = 0;
  DeviceRun whole(everybody(), nullptr, mlp(), data, set);
  set.micro_batches = 2;
  DeviceRun parts(everybody(), nullptr, mlp(), data, set);
  whole.steps(3);
  parts.steps(3);
  CHECK(relative_distance(parts.parameters(), whole.parameters()) < 1e-5);
}

TEST_CASE("all ranks hear of a rank's step that is not finite at the next synchronisation") {
  const MemoryDataset data = images(400);
  DeviceRun run(everybody(), nullptr, mlp(), data, local_set({.synchronise_every = 4}));
  const bool last = world().rank() + 1 == world().size();
  run.steps(1);
  Batch spoiled(data.fields(), run.plan.capacity());
  spoiled.copy_from(run.loader.next());
  if (last) spoiled.input().as<float>()[0] = std::numeric_limits<float>::quiet_NaN();
  CHECK_FALSE(run.strategy.train_step(spoiled).nonfinite);
  CHECK_FALSE(run.step().nonfinite);
  const Batch& batch = run.loader.next();
  const StepResult told = run.strategy.train_step(batch);
  CHECK(told.nonfinite);
  CHECK(std::isfinite(told.loss));
  CHECK(run.strategy.updates() == 4);
  require_mentions(run.strategy.explain_nonfinite(batch),
                   {"on rank " + std::to_string(world().size() - 1), "1 of its steps", "step 2", "not finite"});
  CHECK_FALSE(run.strategy.parameter_hash().empty());
  for (int k = 0; k < 4; ++k) CHECK_FALSE(run.step().nonfinite);
}

TEST_CASE("all ranks hear of a step that is not finite whose fragment was finished between two steps") {
  const MemoryDataset data = images(400);
  DeviceRun run(everybody(), nullptr, mlp(), data,
                local_set({.synchronise_every = 4, .fragments = 2, .fragment_delay = 3}));
  run.steps(1);
  Batch spoiled(data.fields(), run.plan.capacity());
  spoiled.copy_from(run.loader.next());
  if (world().rank() == 0) spoiled.input().as<float>()[0] = std::numeric_limits<float>::quiet_NaN();
  CHECK_FALSE(run.strategy.train_step(spoiled).nonfinite);  // a fragment starts after it
  run.strategy.state().average_states();
  for (int k = 0; k < 4; ++k) CHECK_FALSE(run.step().nonfinite);
  const Batch& batch = run.loader.next();
  CHECK(run.strategy.train_step(batch).nonfinite);
  require_mentions(run.strategy.explain_nonfinite(batch), {"on rank 0", "1 of its steps", "step 2", "not finite"});
  run.strategy.synchronise_next();
  CHECK_FALSE(run.step().nonfinite);
}

TEST_CASE("a step that tells of a save leaves nothing to be told, and what was asked for is told once") {
  const MemoryDataset data = images(400);
  DeviceRun run(everybody(), nullptr, mlp(), data,
                local_set({.synchronise_every = 4, .fragments = 4, .fragment_delay = 2}));
  double weight = run.step().weight;
  int told = 0;
  for (int k = 2; k <= 8; ++k) {
    StepFlags flags;
    if (world().rank() == 0 && told == 0) flags.save = 1;  // until it is saved
    run.strategy.raise(flags);
    const StepResult result = run.step();
    weight += result.weight;
    if (result.flags.save == 0) continue;
    ++told;
    CHECK(weight == 50 * k);
    CHECK(on_all_ranks(equal_on_ranks(run.parameters())));
  }
  CHECK(told == 1);
}

TEST_CASE("a rank that asks to leave is heard long before the synchronisation, by all after the same step") {
  const MemoryDataset data = images(400);
  for (const std::size_t fragments : {1, 2}) {
    DeviceRun run(everybody(), nullptr, mlp(), data,
                  local_set({.synchronise_every = 1'000'000, .fragments = fragments}));
    run.steps(20);
    const std::uint64_t before = run.strategy.updates();
    StepFlags flags;
    if (world().rank() + 1 == world().size()) flags.leave = 1;
    run.strategy.raise(flags);
    StepResult result = run.step();
    while (result.flags.leave == 0 && run.strategy.updates() < before + 100'000) result = run.step();
    CHECK(result.flags.leave == 1);
    CHECK(result.weight > 0);
    CHECK(on_all_ranks(equal_on_ranks(run.parameters())));
    const auto texts = world().communicator().gather_texts(std::to_string(run.strategy.updates()));
    CHECK(std::ranges::all_of(texts, [&](const std::string& text) { return text == texts.front(); }));
  }
}

TEST_CASE("all ranks hear of parameters that one of them lost") {
  const MemoryDataset data = images(400);
  DeviceRun run(everybody(), nullptr, mlp(), data, local_set({.synchronise_every = 2}));
  if (world().rank() == 0) run.strategy.state().set_rate_factor(1e300);
  CHECK_FALSE(run.step().spoiled);
  CHECK(run.step().spoiled);
}

TEST_CASE("ranks without samples wait for the others") {
  const MemoryDataset data = images(3);
  DeviceSet set = local_set({.synchronise_every = 2});
  set.global_batch = 2;
  DeviceRun run(everybody(), nullptr, one_layer(), data, set);
  run.steps(8);
  CHECK(run.strategy.updates() == 8);
  CHECK_FALSE(run.strategy.parameter_hash().empty());
}

TEST_CASE("compressed changes leave equal bits, and what rounding loses goes with the next ones") {
  const MemoryDataset data = images(400);
  const auto run_by = [&](Compression compression) {
    DeviceSet set = local_set({.synchronise_every = 2, .delta_compression = compression}, AllreduceAlgorithm::ring);
    DeviceRun run(everybody(), nullptr, mlp(), data, set);
    run.steps(40);
    CHECK(on_all_ranks(equal_on_ranks(run.parameters())));
    struct Residuals final : StateVisitor {
      void visit(const State& state) override {
        if (!state.name.ends_with(".residual")) return;
        for (const float lost : state.tensor.as<float>()) largest = std::max(largest, std::abs(lost));
      }
      float largest = 0;
    } residuals;
    run.strategy.visit(residuals);
    CHECK((residuals.largest > 0) == (keeps_lost(compression) && world().size() > 1));
    return run.parameters();
  };
  const auto exact = run_by(Compression::none);
  for (const Compression compression :
       {Compression::bf16, Compression::int8, Compression::int4, Compression::two_bit}) {
    const auto rounded = run_by(compression);
    CHECK((rounded == exact) == (world().size() == 1));
    CHECK(relative_distance(rounded, exact) < (compression == Compression::two_bit ? 0.1 : 0.01));
  }
}

TEST_CASE("a ring's bytes are those of the parameters, once in so many steps") {
  const MemoryDataset data = images(400);
  const auto ranks = static_cast<std::size_t>(world().size());
  DeviceRun run(everybody(), nullptr, mlp(), data, local_set({.synchronise_every = 10}, AllreduceAlgorithm::ring));
  run.steps(30);
  const SynchronisationCosts costs = run.strategy.exchange().report().synchronisations;
  CHECK(costs.count == 3);
  std::size_t dense = 0;
  for (const auto& bucket : run.strategy.exchange().report().buckets) dense += bucket.bytes;
  std::uint64_t all = costs.sent_bytes;
  std::int64_t sum = static_cast<std::int64_t>(all);
  everybody().allreduce(Tensor(std::span(&sum, 1)));
  const std::size_t control = 4 * sizeof(StepControl);  // three times with the changes, once alone
  CHECK(static_cast<std::size_t>(sum) == 2 * (ranks - 1) * (3 * dense + control));
}

TEST_CASE("what cannot make local steps is refused, with the remedy") {
  require_mentions(local_refusal({.synchronise_every = 0}), {".synchronise_every"});
  for (const std::size_t bad : {0, 51})
    require_mentions(local_refusal({.fragments = bad}), {".fragments", std::to_string(bad)});
  for (const std::uint64_t bad : {0, 50})
    require_mentions(local_refusal({.fragments = 2, .fragment_delay = bad}), {".fragment_delay", std::to_string(bad)});
  require_mentions(local_refusal({.fragment_delay = 2}), {".fragment_delay", ".fragments"});
  require_mentions(local_refusal({.outer_rate = 0.5}), {".outer_rate", "nesterov"});
  for (const double bad : {0.0, -1.0, std::numeric_limits<double>::infinity()})
    require_mentions(local_refusal({.outer_optimizer = OuterOptimizer::nesterov, .outer_rate = bad}),
                     {".outer_rate", "above 0"});
  for (const double bad : {1.0, -0.5})
    require_mentions(local_refusal({.outer_optimizer = OuterOptimizer::nesterov, .outer_momentum = bad}),
                     {".outer_momentum", "below 1"});
  require_mentions(local_refusal({}, mlp(), {.dtype = DType::bfloat16}), {"bfloat16", ".strategy = local_sgd"});
  if (world().size() > 1)
    require_mentions(local_refusal({}, Sequential(Flatten(), Dense(9), SyncBatchNorm(), ReLU(), Dense(4))),
                     {"SyncBatchNorm", "BatchNorm"});
  const Devices devices(everybody(), AllreduceAlgorithm::staged);
  const MemoryDataset data = images(64);
  require_mentions(message_of<InputError>([&] { DeviceRun(devices, mlp(), data, {.strategy = LocalSgd()}); }),
                   {"GPU", ".strategy = local_sgd", ".device = cpu"});
  require_mentions(message_of<InputError>([] { static_cast<void>(parse_outer_optimizer("adam")); }),
                   {"'adam'", "average or nesterov"});
}

}  // namespace local_sgd_test
