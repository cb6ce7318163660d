// The flagship: many ranks do what one rank does.
#include "support/catch.hpp"
#include "support/message.hpp"
#include "support/ranks.hpp"
#include "support/sanitizer.hpp"
#include "support/toy_data.hpp"
#include "strategy/step_by_hand.hpp"
#include "strategy/timed_picks.hpp"

#include <ronda/core/error.hpp>
#include <ronda/core/hash.hpp>
#include <ronda/data/transform.hpp>
#include <ronda/layers/layers.hpp>
#include <ronda/optim/make_optimizer.hpp>
#include <ronda/runtime/strategy/mirrored/mirrored_strategy.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>

using namespace ronda;
using namespace ronda::test;

namespace mirrored_test {
namespace {

struct Set {
  std::size_t global_batch = 0, accumulate = 1;
  std::string optimizer = "nesterov";
  double clip_norm = 0, clip_value = 0, ema_decay = 0;
  int threads = 1;
  AllreduceAlgorithm algorithm = AllreduceAlgorithm::automatic;
  std::size_t bucket_bytes = 4096;  // several buckets even for small models
  std::size_t node_update_bytes = std::numeric_limits<std::size_t>::max();
  Picks picks = {};
  std::shared_ptr<Primitives> primitives = nullptr;
  Compression compression = Compression::none;
  bool check_gradients = false;
};

/// A strategy with its model, its loss and its place in the data.
struct Run {
  Sequential model;
  SoftmaxCrossEntropy loss;
  BatchPlan plan;
  BatchLoader loader;
  MirroredStrategy strategy;

  Run(const Communicator& communicator, Sequential m, const Dataset& data, const Set& set)
      : model(std::move(m)),
        plan(data.size(), set.global_batch, shard_of(communicator), set.accumulate),
        loader(data, SampleOrder(data.size(), 1, true), plan),
        strategy(communicator, model, loss, make_optimizer({.name = set.optimizer}), Schedule({.learning_rate = 0.05}),
                 options(data, set, plan)) {
    keep_timed(communicator, strategy.picks());
  }

  static MirroredOptions options(const Dataset& data, const Set& set, const BatchPlan& plan) {
    MirroredOptions o;
    o.shape.fields = {data.fields().begin(), data.fields().end()};
    o.shape.batch_capacity = plan.capacity();
    o.shape.global_batch = plan.global_batch();
    o.shape.micro_batches = set.accumulate;
    o.clip_norm = set.clip_norm;
    o.clip_value = set.clip_value;
    o.ema_decay = set.ema_decay;
    o.check_gradients = set.check_gradients;
    o.fusion = {.first_bucket_bytes = 1024,
                .bucket_bytes = set.bucket_bytes,
                .algorithm = set.algorithm,
                .compression = set.compression};
    o.node_update_bytes = set.node_update_bytes;
    o.threads = set.threads;
    o.picks = with_timed(set.picks);
    o.platform.primitives = set.primitives;
    return o;
  }
  StepResult step() {
    for (std::size_t i = 0; i + 1 < plan.micro_batches(); ++i) strategy.accumulate(loader.next());
    return strategy.train_step(loader.next());
  }
  void steps(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) step();
  }
  std::vector<float> parameters() {
    std::vector<float> all;
    for (const auto& p : strategy.parameters()) {
      const auto values = to_file(p, p.trained());
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }
};

Sequential mlp() { return Sequential(Flatten(), Dense(33), ReLU(), Dense(4)); }
Sequential cnn() { return Sequential(Conv2d(8, 3), ReLU(), MaxPool2d(2), Conv2d(16, 3), ReLU(), Flatten(), Dense(4)); }

Communicator everybody() { return world().communicator(); }
Communicator alone() { return world().communicator().split(world().rank(), 0); }

/// The float32 numbers.
std::vector<float> kept_by_layers(Run& run) {
  struct Kept final : StateVisitor {
    void visit(const State& state) override {
      if (state.tensor.dtype() != DType::float32) return;
      const auto numbers = to_file(state);
      all.insert(all.end(), numbers.begin(), numbers.end());
    }
    std::vector<float> all;
  } kept;
  run.strategy.state().visit_layer_states(kept);
  return kept.all;
}

bool equal_on_all_ranks(const std::vector<float>& numbers) {
  const auto all = everybody().gather_texts(Hash().add(std::as_bytes(std::span(numbers))).text());
  return std::ranges::all_of(all, [&](const std::string& text) { return text == all.front(); });
}

}  // namespace

TEST_CASE("any number of ranks trains what one rank trains, exactly weighted") {
  const MemoryDataset data =
      toy_images(302, {9, 7, 1}, 4);  // batches of 100: the last has 2 samples, so ranks stay empty
  for (const OptimizerRow& optimizer : optimizer_rows())
    for (const auto algorithm : {AllreduceAlgorithm::automatic, AllreduceAlgorithm::ring, AllreduceAlgorithm::mpi}) {
      if (algorithm != AllreduceAlgorithm::automatic && optimizer.name != "nesterov" && optimizer.name != "lars")
        continue;
      INFO(optimizer.name);
      Set set{.global_batch = 100, .optimizer = std::string(optimizer.name)};
      set.algorithm = algorithm;
      Run one(alone(), mlp(), data, set), many(everybody(), mlp(), data, set);
      for (std::size_t k = 0; k < 2 * one.plan.steps_per_epoch(); ++k) {
        const StepResult a = one.step(), b = many.step();
        CHECK(b.weight == a.weight);  // counts are exact
        CHECK(b.loss == Approx(a.loss).epsilon(1e-4));
      }
      // Sums in another order: a few roundings of 6e-8 a step, grown by eight steps.
      CHECK(relative_distance(many.parameters(), one.parameters()) < 1e-4);
      CHECK_FALSE(many.strategy.parameter_hash().empty());  // throws where replicas differ
    }
}

TEST_CASE("randomly changed samples train alike on any number of ranks, also from the middle of an epoch on") {
  const MemoryDataset plain = toy_images(302, {9, 7, 1}, 4);
  const TransformedDataset data(plain, {random_flip(), random_shift(2)});
  const Set set{.global_batch = 100};
  Run one(alone(), mlp(), data, set), many(everybody(), mlp(), data, set);
  for (std::size_t k = 0; k < 2 * one.plan.steps_per_epoch(); ++k) {
    const double loss = one.step().loss;
    CHECK(many.step().loss == Approx(loss).epsilon(1e-4));
  }
  one.loader.seek(3, 2);
  many.loader.seek(3, 2);
  for (int k = 0; k < 4; ++k) {
    const double loss = one.step().loss;
    CHECK(many.step().loss == Approx(loss).epsilon(1e-4));
  }
  CHECK(relative_distance(many.parameters(), one.parameters()) < 1e-4);
}

TEST_CASE("any number of ranks trains convolutions of sequences alike, in half types too") {
  const MemoryDataset data = toy_images(302, {15, 6}, 4);
  const auto model = [] {
    return Sequential(Conv1d(17, 3, {.stride = 2, .padding = 1}), ReLU(), AveragePool1d(2),
                      Residual(Conv1d(17, 4, {.padding = same_padding})), GELU(), Conv1d(16, 2), Flatten(), Dense(4));
  };
  const std::vector<std::pair<std::shared_ptr<Primitives>, double>> all{
      {nullptr, 1e-4}, {make_reference_primitives(), 1e-4}, {make_onednn_primitives(1, DType::bfloat16), 2e-2}};
  for (const auto& [primitives, tolerance] : all) {
    Set set{.global_batch = 100};
    set.primitives = primitives;
    Run one(alone(), model(), data, set), many(everybody(), model(), data, set);
    for (std::size_t k = 0; k < (sanitized ? 1 : 2) * one.plan.steps_per_epoch(); ++k)
      CHECK(many.step().loss == Approx(one.step().loss).epsilon(tolerance));
    CHECK(relative_distance(many.parameters(), one.parameters()) < tolerance);
    CHECK_FALSE(many.strategy.parameter_hash().empty());
  }
}

TEST_CASE("any number of ranks and micro-batches drops the same elements") {
  const MemoryDataset data = toy_images(302, {9, 7, 1}, 4);
  const auto model = [] {
    return Sequential(Flatten(), Dense(33), ReLU(), Dropout(0.5), Dense(16), ReLU(), Dropout(0.2), Dense(4));
  };
  const Set set{.global_batch = 100};
  Run one(alone(), model(), data, set), many(everybody(), model(), data, set),
      pieces(everybody(), model(), data, {.global_batch = 100, .accumulate = 3}),
      none(alone(), Sequential(Flatten(), Dense(33), ReLU(), Dense(16), ReLU(), Dense(4)), data, set);
  CHECK(none.step().loss != Approx(one.step().loss).epsilon(1e-3));
  many.step();
  pieces.step();
  for (std::size_t k = 0; k < 2 * one.plan.steps_per_epoch(); ++k) {
    const double loss = one.step().loss;
    CHECK(many.step().loss == Approx(loss).epsilon(1e-4));
    CHECK(pieces.step().loss == Approx(loss).epsilon(1e-4));
  }
  CHECK(relative_distance(many.parameters(), one.parameters()) < 1e-4);
  CHECK(relative_distance(pieces.parameters(), one.parameters()) < 1e-4);
}

TEST_CASE("a sample that is not finite spoils the step that it is in, and no other, on any number of ranks") {
  constexpr std::size_t size = 302, pixels = 6;  // the last batch of an epoch has 2 samples, so ranks stay empty
  std::vector<std::uint64_t> order(size);
  SampleOrder(size, 1, true).write(1, order);
  REQUIRE((order[size - 2] != 0 && order[size - 1] != 0));
  for (const float value : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()})
    for (const std::uint64_t sample : {std::uint64_t{0}, order[size - 1]})
      for (const std::size_t accumulate : {1, 3}) {
        INFO("sample " << sample << " is " << value << ", " << accumulate << " micro-batches");
        std::vector<float> inputs(size * pixels, 1.0F);
        std::fill_n(inputs.begin() + static_cast<std::ptrdiff_t>(sample * pixels), pixels, value);
        const MemoryDataset data(std::move(inputs), {2, 3, 1}, std::vector<std::int32_t>(size, 1));
        Run run(everybody(), mlp(), data, {.global_batch = 100, .accumulate = accumulate});
        run.loader.seek(1, run.plan.steps_per_epoch() - 1);
        const StepResult result = run.step();
        CHECK((result.nonfinite || result.spoiled) == (sample != 0));
      }
}

TEST_CASE("steps after one that is not finite are finite, where gradients are compressed too") {
  constexpr std::size_t size = 400, pixels = 6;
  std::vector<std::uint64_t> order(size);
  SampleOrder(size, 1, true).write(1, order);
  std::vector<float> inputs(size * pixels, 1.0F);
  inputs[order[100] * pixels] = std::numeric_limits<float>::quiet_NaN();  // of the second step
  const MemoryDataset data(std::move(inputs), {2, 3, 1}, std::vector<std::int32_t>(size, 1));
  for (const Compression compression : {Compression::fp16, Compression::int8, Compression::int4, Compression::two_bit})
    for (const AllreduceAlgorithm algorithm :
         {AllreduceAlgorithm::ring, AllreduceAlgorithm::halving, AllreduceAlgorithm::doubling}) {
      INFO(name_of(compression) << " by " << name_of(algorithm));
      const Set set{.global_batch = 100, .algorithm = algorithm, .compression = compression, .check_gradients = true};
      Run run(everybody(), mlp(), data, set);
      for (int step = 1; step <= 4; ++step) CHECK(run.step().nonfinite == (step == 2));
    }
}

TEST_CASE("synchronised batch norms normalise as one rank does, and keep the same bits on all") {
  const MemoryDataset data =
      toy_images(sanitized ? 102 : 302, {9, 7, 1}, 4);  // the last batch has 2 samples, so ranks stay empty
  const auto model = [](const auto& norm) {
    return Sequential(Conv2d(6, 3, {.bias = false}), norm(), ReLU(), Conv2d(17, 3), Flatten(), norm(), Dense(9), norm(),
                      ReLU(), Dense(4));
  };
  const auto synchronized = [] { return SyncBatchNorm(); };
  const auto own = [] { return BatchNorm(); };
  for (const bool plain : {true, false}) {
    Set set{.global_batch = 100};
    if (plain)
      set.primitives = make_reference_primitives();
    else
      set.node_update_bytes = 0;
    Run one(alone(), model(own), data, set), many(everybody(), model(synchronized), data, set);
    for (std::size_t k = 0; k < one.plan.steps_per_epoch() + 1; ++k)
      CHECK(many.step().loss == Approx(one.step().loss).epsilon(1e-4));
    CHECK(relative_distance(many.parameters(), one.parameters()) < 1e-4);
    const auto kept = kept_by_layers(many);
    CHECK(relative_distance(kept, kept_by_layers(one)) < 1e-4);
    CHECK(equal_on_all_ranks(kept));
    const Evaluation a = one.strategy.evaluate(one.loader), b = many.strategy.evaluate(many.loader);
    CHECK(b.loss == Approx(a.loss).epsilon(1e-3));
    CHECK(kept_by_layers(many) == kept);  // an average of equal numbers
  }
}

TEST_CASE("synchronised batch norms of micro-batches too keep the same bits; others do when they were averaged") {
  const MemoryDataset data = toy_images(302, {9, 7, 1}, 4);
  Run pieces(everybody(), Sequential(Flatten(), Dense(9), SyncBatchNorm(), ReLU(), Dense(4)), data,
             {.global_batch = 100, .accumulate = 3}),
      apart(everybody(), Sequential(Flatten(), Dense(9), BatchNorm(), ReLU(), Dense(4)), data, {.global_batch = 100});
  for (int k = 0; k < 5; ++k) {
    CHECK(std::isfinite(pieces.step().loss));
    CHECK(std::isfinite(apart.step().loss));
  }
  CHECK(equal_on_all_ranks(kept_by_layers(pieces)));
  CHECK(equal_on_all_ranks(kept_by_layers(apart)) == (world().size() == 1));
  apart.strategy.state().average_states();
  CHECK(equal_on_all_ranks(kept_by_layers(apart)));
  CHECK_FALSE(pieces.strategy.parameter_hash().empty());  // throws where replicas differ
}

TEST_CASE("the search for numbers that are not finite leaves what layers keep as it was") {
  const MemoryDataset data = toy_images(64, {9, 7, 1}, 4);
  Run run(everybody(), Sequential(Flatten(), Dense(9), SyncBatchNorm(), ReLU(), Dense(4)), data, {.global_batch = 32});
  run.step();
  const auto kept = kept_by_layers(run);
  static_cast<void>(run.strategy.explain_nonfinite(run.loader.next()));
  CHECK(kept_by_layers(run) == kept);
}

TEST_CASE("a convolutional network too, for the first steps") {
  const MemoryDataset data = toy_images(90, {12, 12, 1}, 4);
  // Plain loops: what each number of ranks takes for fastest would differ by more than the order of sums.
  const auto set = [] { return Set{.global_batch = 25, .primitives = make_reference_primitives()}; };
  Run one(alone(), cnn(), data, set()), many(everybody(), cnn(), data, set());
  const std::size_t steps = sanitized ? 5 : 20;
  one.steps(steps);
  many.steps(steps);
  CHECK(relative_distance(many.parameters(), one.parameters()) < 1e-4);
  CHECK_FALSE(many.strategy.parameter_hash().empty());
}

TEST_CASE("two equal runs are equal to the bit, with two threads a rank as well") {
  const MemoryDataset data = toy_images(96, {12, 12, 1}, 4);
  for (const int threads : {1, 2}) {
    if (threads * world().size() > 4) continue;  // many more threads than cores take minutes, and show nothing new
    Set set{.global_batch = 32};
    set.threads = threads;
    Run first(everybody(), cnn(), data, set);
    set.picks = first.strategy.picks();
    EventSink nobody;
    const RankPicker picker(everybody(), set.picks, "", nobody);
    for (const auto& [question, name] : set.picks) CHECK(picker.known(question) == name);
    CHECK(picker.known("what nobody asked").empty());
    Run second(everybody(), cnn(), data, set);
    first.steps(9);
    second.steps(9);
    CHECK(first.strategy.plan_hash() == second.strategy.plan_hash());
    CHECK(first.strategy.parameter_hash() == second.strategy.parameter_hash());
    CHECK_FALSE(second.strategy.plan().timed_something);
  }
}

TEST_CASE("ranks of different numbers of threads train together, and their replicas stay equal to the bit") {
  const MemoryDataset data = toy_images(96, {12, 12, 1}, 4);
  const auto wide = [] { return Sequential(Conv2d(8, 3), ReLU(), Flatten(), Dense(96), ReLU(), Dense(4)); };
  for (const char* optimizer : {"momentum", "lars"}) {
    INFO(optimizer);
    Set set{.global_batch = 32, .optimizer = optimizer, .clip_norm = 0.1};
    set.threads = world().rank() == 0 ? 2 : 1;
    Run run(everybody(), wide(), data, set);
    run.steps(sanitized ? 3 : 9);
    for (const auto& hash : everybody().gather_texts(run.strategy.parameter_hash()))
      CHECK(hash == run.strategy.parameter_hash());
    for (const auto& hash : everybody().gather_texts(run.strategy.plan_hash())) CHECK(hash == run.strategy.plan_hash());
  }
}

TEST_CASE("micro-batches add up to their batch, with clipping too") {
  const MemoryDataset data = toy_images(130, {9, 7, 1}, 4);
  for (const double clip : {0.0, 0.1}) {
    Set set{.global_batch = 50};
    set.clip_norm = clip;
    Run whole(everybody(), mlp(), data, set);
    set.accumulate = 3;
    Run pieces(everybody(), mlp(), data, set);
    for (int k = 0; k < 6; ++k) {
      const StepResult a = whole.step(), b = pieces.step();
      CHECK(b.weight == a.weight);
      CHECK(b.loss == Approx(a.loss).epsilon(1e-4));
      CHECK(b.gradient_norm == Approx(a.gradient_norm).epsilon(1e-3));
    }
    CHECK(relative_distance(pieces.parameters(), whole.parameters()) < 1e-4);
  }
}

TEST_CASE("a gradient is clipped by its norm or by value, not both") {
  const MemoryDataset data = toy_images(64, {9, 7, 1}, 4);
  Set set{.global_batch = 32};
  set.clip_norm = set.clip_value = 1;
  require_mentions(message_of<InputError>([&] { Run(everybody(), mlp(), data, set); }), {".clip_norm", ".clip_value"});
}

TEST_CASE("the parts of a step, called by hand, give the bits of train_step") {
  const MemoryDataset data = toy_images(64, {9, 7, 1}, 4);
  Run whole(everybody(), mlp(), data, {.global_batch = 32});
  Set same{.global_batch = 32};
  same.picks = whole.strategy.picks();
  Run parts(everybody(), mlp(), data, same);
  for (int k = 0; k < 5; ++k) {
    whole.step();
    step_by_hand(parts.strategy, parts.loader.next());
  }
  CHECK(whole.strategy.parameter_hash() == parts.strategy.parameter_hash());
}

namespace {

/// What `visit` shows, in file layout, one after the other.
std::vector<float> state_of(MirroredStrategy& strategy) {
  struct Reader final : StateVisitor {
    std::vector<float> all;
    void visit(const State& state) override {
      const TensorDesc plain{state.tensor.shape(), DType::float32, {}};
      std::vector<float> values(static_cast<std::size_t>(plain.count()));
      reorder(state.tensor, Tensor(plain, values.data()));
      all.insert(all.end(), values.begin(), values.end());
    }
  } reader;
  strategy.state().gather_state();
  strategy.visit(reader);
  return reader.all;
}

bool by_parts(const MirroredStrategy& strategy) {
  return std::ranges::any_of(strategy.plan_lines(),
                             [](const auto& line) { return line.starts_with("update by parts"); });
}

}  // namespace

TEST_CASE("an update by parts leaves the bits of everybody's own") {
  const MemoryDataset data = toy_images(131, {29, 19, 1}, 4);  // 18,352 parameters: several blocks, no even parts
  struct Clipping {
    double norm = 0, value = 0;
  };
  for (const std::string optimizer : {"sgd", "nesterov", "adamw", "lars", "rmsprop", "lion", "lamb", "muon"})
    for (const Clipping& clip : {Clipping{}, Clipping{.norm = 0.1}, Clipping{.value = 0.001}})
      for (const std::size_t accumulate : {1, 3}) {
        const bool clipping = clip.norm + clip.value > 0;
        if (clipping && optimizer != "nesterov" && optimizer != "lars" && optimizer != "lamb") continue;
        if (sanitized && (optimizer == "rmsprop" || optimizer == "lion")) continue;  // they keep what others keep
        INFO(optimizer << ", clipped by norm " << clip.norm << " or value " << clip.value);
        Set set{.global_batch = 50, .accumulate = accumulate, .optimizer = optimizer, .clip_norm = clip.norm};
        set.clip_value = clip.value;
        set.ema_decay = accumulate == 1 ? 0 : 0.9;
        set.threads = accumulate == 1 ? 1 : 2;
        Run each(everybody(), mlp(), data, set);
        set.picks = each.strategy.picks();
        set.node_update_bytes = 0;
        Run parts(everybody(), mlp(), data, set);
        CHECK(by_parts(parts.strategy) == (world().size() > 1 && everybody().topology().nodes == 1));
        CHECK_FALSE(by_parts(each.strategy));
        for (std::size_t k = 0; k < (sanitized ? 1 : 2) * each.plan.steps_per_epoch(); ++k) {
          const StepResult a = each.step(), b = parts.step();
          CHECK(b.loss == a.loss);
          CHECK(b.gradient_norm == a.gradient_norm);
        }
        CHECK(parts.strategy.parameter_hash() == each.strategy.parameter_hash());
        CHECK(state_of(parts.strategy) == state_of(each.strategy));
      }
}

TEST_CASE("a step by hand applies the sums that it is given, and one that is not applied changes nothing") {
  const MemoryDataset data = toy_images(64, {9, 7, 1}, 4);
  for (const std::size_t accumulate : {1, 2})
    for (const std::size_t node_update_bytes : {std::size_t{0}, std::numeric_limits<std::size_t>::max()}) {
      // How far a step by hand goes; its weight is multiplied.
      const auto moved = [&](double times) {
        Set set{.global_batch = 32, .accumulate = accumulate, .optimizer = "sgd"};
        set.node_update_bytes = node_update_bytes;
        set.primitives = make_reference_primitives();
        Run run(everybody(), mlp(), data, set);
        const auto by_hand = [&](bool applies) {
          for (std::size_t i = 1; i < accumulate; ++i) run.strategy.accumulate(run.loader.next());
          const Batch& batch = run.loader.next();
          const Pass pass = run.strategy.begin_pass(batch);
          run.strategy.forward(batch, pass);
          run.strategy.loss(batch, pass);
          run.strategy.backward(pass);
          StepControl total = run.strategy.reduce(pass);
          if (!applies) return;
          total.weight *= times;
          CHECK(run.strategy.apply(total, pass).weight == total.weight);
        };
        const auto first = run.parameters();
        by_hand(false);
        CHECK(run.parameters() == first);
        CHECK(run.strategy.updates() == 0);
        run.loader.seek(1);
        by_hand(true);
        CHECK(run.strategy.updates() == 1);
        std::vector<float> way = run.parameters();
        std::ranges::transform(way, first, way.begin(), std::minus());
        return way;
      };
      auto half = moved(2);
      for (float& element : half) element *= 2;
      CHECK(relative_distance(half, moved(1)) < 1e-3);  // differences of parameters, which are rounded
    }
}

TEST_CASE("steps on the processor are begun, accumulated and finished in their order, or refused") {
  const MemoryDataset data = toy_images(64, {9, 7, 1}, 4);
  Run run(everybody(), mlp(), data, {.global_batch = 32, .accumulate = 2});
  CHECK_THROWS_AS(run.strategy.finish_step(), LogicError);                  // none is begun
  CHECK_THROWS_AS(run.strategy.begin_step(run.loader.next()), LogicError);  // the first of two
  run.loader.seek(1);
  run.strategy.accumulate(run.loader.next());
  const Batch& last = run.loader.next();
  CHECK_THROWS_AS(run.strategy.accumulate(last), LogicError);  // the last of two
  run.strategy.begin_step(last);
  CHECK_THROWS_AS(run.strategy.begin_pass(last), LogicError);
  CHECK_THROWS_AS(run.strategy.accumulate(last), LogicError);
  CHECK_THROWS_AS(run.strategy.state().set_updates(3), LogicError);
  CHECK(run.strategy.finish_step().weight == 32);
  run.step();
  CHECK(run.strategy.updates() == 2);
}

TEST_CASE("updates by parts and steps by hand may take turns") {
  const MemoryDataset data = toy_images(64, {9, 7, 1}, 4);
  Run each(everybody(), mlp(), data, {.global_batch = 32});
  Set set{.global_batch = 32};
  set.picks = each.strategy.picks();
  set.node_update_bytes = 0;
  Run parts(everybody(), mlp(), data, set);
  for (int k = 0; k < 6; ++k) {
    each.step();
    if (k % 2 == 0) {
      parts.step();
      continue;
    }
    const Batch& batch = parts.loader.next();
    const Pass pass = parts.strategy.begin_pass(batch);
    parts.strategy.forward(batch, pass);
    parts.strategy.loss(batch, pass);
    parts.strategy.backward(pass);
    const StepControl& total = parts.strategy.reduce(pass);
    if (k == 5) {  // gradients are sums on all ranks
      float sum = 0;
      for (const float g : parts.strategy.parameters()[0].gradient.as<float>()) sum += g;
      float largest = sum;
      everybody().allreduce(Tensor(std::span(&largest, 1)), ReduceOp::maximum);
      CHECK(sum == largest);
    }
    parts.strategy.apply(total, pass);
  }
  CHECK(parts.strategy.parameter_hash() == each.strategy.parameter_hash());
}

TEST_CASE("a layer of the user's own is given plain images, whatever the convolution before it writes") {
  class Identity final : public CustomOperation {
   public:
    [[nodiscard]] std::string_view kind() const noexcept override { return "identity"; }
    [[nodiscard]] Shape output(std::span<const Shape> inputs) const override { return inputs[0]; }
    void forward(const CustomArguments& a, const Pass&) const override {
      std::ranges::copy(a.input(), a.output().begin());
    }
    void backward(const CustomArguments& a, const Pass&) const override {
      std::ranges::copy(a.output_gradient(), a.input_gradient().begin());
    }
  };
  const Function identity([](Value x, GraphBuilder& b) { return b.apply(std::make_shared<Identity>(), {x}); });
  const MemoryDataset data = toy_images(64, {12, 12, 1}, 4);
  Sequential with(Conv2d(16, 3), identity, Conv2d(16, 3), Flatten(), Dense(4));
  Sequential without(Conv2d(16, 3), Conv2d(16, 3), Flatten(), Dense(4));
  Run a(everybody(), std::move(with), data, {.global_batch = 32});
  Run b(everybody(), std::move(without), data, {.global_batch = 32});
  a.steps(3);
  b.steps(3);
  CHECK(relative_distance(a.parameters(), b.parameters()) < 1e-4);
}

TEST_CASE("evaluation counts every sample once") {
  const MemoryDataset data = toy_images(57, {9, 7, 1}, 4);
  Run one(alone(), mlp(), data, {.global_batch = 16}), many(everybody(), mlp(), data, {.global_batch = 16});
  const Evaluation a = one.strategy.evaluate(one.loader), b = many.strategy.evaluate(many.loader);
  CHECK(b.metric == a.metric);  // quotients of equal whole numbers
  CHECK(b.loss == Approx(a.loss).epsilon(1e-6));
  CHECK(a.metric * 57 == Approx(std::round(a.metric * 57)));
}

TEST_CASE("batches that the model was not planned for are refused") {
  const MemoryDataset data = toy_images(48, {9, 7, 1}, 4), others = toy_images(48, {7, 9, 1}, 4);
  Run run(everybody(), mlp(), data, {.global_batch = 16});
  const auto loader = [&](const Dataset& set, std::size_t global_batch, std::size_t rows = 0) {
    const BatchPlan plan(set.size(), global_batch, shard_of(everybody()));
    return BatchLoader(set, SampleOrder(set.size(), 1, true), plan.with_capacity(rows));
  };
  for (const std::size_t global_batch : {8, 48}) {
    BatchLoader other_rows = loader(data, global_batch);
    CHECK_THROWS_AS(run.strategy.evaluate(other_rows), InputError);
    CHECK_THROWS_AS(run.strategy.train_step(other_rows.next()), InputError);
  }
  BatchLoader other_shape = loader(others, 16), fewer = loader(data, 8, run.plan.capacity());
  CHECK_THROWS_AS(run.strategy.evaluate(other_shape), InputError);
  CHECK_THROWS_AS(run.strategy.train_step(other_shape.next()), InputError);
  CHECK(run.strategy.evaluate(fewer).metric == run.strategy.evaluate(run.loader).metric);
  CHECK(run.step().weight == 16);  // nothing was begun
}

TEST_CASE("a rank's wish to stop reaches all in the same step") {
  const MemoryDataset data = toy_images(64, {9, 7, 1}, 4);
  Run run(everybody(), mlp(), data, {.global_batch = 32});
  CHECK_FALSE(run.step().stop);
  if (world().rank() == world().size() - 1) run.strategy.request_stop();
  CHECK(run.step().stop);
}

TEST_CASE("an average of the parameters is evaluated in their place, and training goes on without it") {
  const MemoryDataset data = toy_images(131, {29, 19, 1}, 4);
  for (const std::size_t node_update_bytes : {std::size_t{0}, std::numeric_limits<std::size_t>::max()}) {
    Set set{.global_batch = 50, .optimizer = "nesterov"};
    set.node_update_bytes = node_update_bytes;
    Run plain(everybody(), mlp(), data, set);
    set.picks = plain.strategy.picks();
    set.ema_decay = 0.8;
    Run averaging(everybody(), mlp(), data, set);
    std::vector<double> expected;
    for (int step = 1; step <= 7; ++step) {
      plain.step();
      averaging.step();
      const std::vector<float> now = plain.parameters();
      if (step == 1) expected.assign(now.begin(), now.end());
      for (std::size_t i = 0; i < now.size(); ++i) expected[i] = 0.8 * expected[i] + 0.2 * now[i];
      CHECK(averaging.parameters() == now);
    }
    std::vector<float> average;
    averaging.strategy.state().with_average([&] {
      average = averaging.parameters();
      averaging.strategy.state().with_average([&] { CHECK(averaging.parameters() == average); });
    });
    for (std::size_t i = 0; i < average.size(); ++i)
      CHECK(average[i] == Approx(expected[i]).epsilon(1e-5).margin(1e-6));
    CHECK(averaging.parameters() == plain.parameters());
    const auto tested = [](Run& run) {
      run.loader.seek(1);
      return run.strategy.evaluate(run.loader).loss;
    };
    const double of_average = tested(averaging);
    CHECK(of_average != tested(plain));
    std::size_t at = 0;
    for (const auto& p : plain.strategy.parameters()) {
      const auto count = static_cast<std::size_t>(p.value.desc().count());
      from_file(p, std::span(average).subspan(at, count), p.value);
      at += count;
    }
    CHECK(tested(plain) == of_average);
    CHECK_THROWS_AS(averaging.strategy.state().with_average([] { throw std::runtime_error("enough"); }),
                    std::runtime_error);
    CHECK(tested(averaging) == of_average);
  }
  Set bad{.global_batch = 50};
  bad.ema_decay = 1;
  require_mentions(message_of<InputError>([&] { Run(everybody(), mlp(), data, bad); }), {".ema_decay"});
}

TEST_CASE("a frozen group keeps its values, a rate factor of one's own changes the others'") {
  const MemoryDataset data = toy_images(64, {9, 7, 1}, 4);
  Sequential model = mlp();
  SoftmaxCrossEntropy loss;
  const BatchPlan plan(64, 32, shard_of(everybody()));
  BatchLoader loader(data, SampleOrder(64, 1, true), plan);
  MirroredOptions options = Run::options(data, {}, plan);
  options.group_of = [](std::string_view name) {
    return ParameterGroup{.rate_factor = 1, .weight_decay = {}, .frozen = name.starts_with("dense1")};
  };
  MirroredStrategy strategy(everybody(), model, loss, make_optimizer({}), Schedule({.learning_rate = 0.1}), options);
  const auto values = [&](std::size_t i) { return to_file(strategy.parameters()[i], strategy.parameters()[i].value); };
  const auto before = values(0), before_last = values(2);
  strategy.train_step(loader.next());
  CHECK(values(0) == before);
  CHECK(values(2) != before_last);
}

TEST_CASE("what is said to fit a limit of memory fits it") {
  const MemoryUse use{.parameters = 100, .gradients = 100, .optimizer = 100, .activations = 320};  // 10 a row
  const auto advice = [&](std::size_t limit) {
    return message_of<InputError>([&] { check_memory_limit(use, limit, 32, 1); });
  };
  CHECK(advice(620).empty());
  require_mentions(advice(480), {".batch_size = 18)", ".accumulate = 4)"});  // with 100 for their sum
  require_mentions(advice(350), {".batch_size = 5)"});
  CHECK(advice(350).find(".accumulate") == std::string::npos);
  require_mentions(advice(305), {"No batch fits"});
}

TEST_CASE("what cannot be planned is refused on all ranks together") {
  const MemoryDataset data = toy_images(64, {9, 7, 1}, 4);
  CHECK_THROWS_AS(Run(everybody(), Sequential(Flatten()), data, {.global_batch = 32}), Error);
  CHECK_THROWS_AS(Run(everybody(), Sequential(Conv2d(3, 11), Flatten(), Dense(2)), data, {.global_batch = 32}), Error);
  SoftmaxCrossEntropy loss;
  Sequential model = mlp();
  Run fits(everybody(), mlp(), data, {.global_batch = 32});
  MirroredOptions options = Run::options(data, {.global_batch = 32}, fits.plan);
  options.picks = fits.strategy.picks();
  options.memory_limit = fits.strategy.memory().total() - 1;
  try {
    MirroredStrategy strategy(everybody(), model, loss, make_optimizer({.name = "nesterov"}),
                              Schedule({.learning_rate = 0.1}), options);
    FAIL("a plan beyond the limit was accepted");
  } catch (const Error& error) {
    CHECK(error.status() == ExitStatus::bad_input);
    CHECK(std::string(error.what()).find(".batch_size") != std::string::npos);
  }
  if (world().size() > 1) {  // ranks with different models
    Sequential different(Flatten(), Dense(world().rank() == 0 ? 4 : 5));
    MirroredOptions plain = Run::options(data, {}, BatchPlan(64, 32));
    CHECK_THROWS_AS(
        MirroredStrategy(everybody(), different, loss, make_optimizer({}), Schedule({.learning_rate = 0.1}), plain),
        Error);
  }
}

}  // namespace mirrored_test
