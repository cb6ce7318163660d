// What layers of a user's own may count on, and what they cannot break.
#include "support/catch.hpp"
#include "support/ranks.hpp"
#include "support/running_mean.hpp"
#include "support/toy_data.hpp"

#include <ronda/core/error.hpp>
#include <ronda/layers/layers.hpp>
#include <ronda/optim/make_optimizer.hpp>
#include <ronda/runtime/strategy/mirrored/mirrored_strategy.hpp>

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

using namespace ronda;
using namespace ronda::test;

namespace own_layers_test {
namespace {

/// A strategy for a model and its place in the data.
struct Run {
  /// @param picks  given: what another run's plan has, so that both compute the same bits
  Run(const Layer& model, const Loss& loss, const Dataset& data, std::size_t global_batch = 32, const Picks& picks = {})
      : plan(data.size(), global_batch, shard_of(world().communicator())),
        loader(data, SampleOrder(data.size(), 1, true), plan),
        strategy(world().communicator(), model, loss, make_optimizer({.name = "sgd"}),
                 Schedule({.learning_rate = 0.05}), options(data, picks)) {}
  [[nodiscard]] MirroredOptions options(const Dataset& data, const Picks& picks) const {
    MirroredOptions o = MirroredOptions::for_data(data, plan);
    o.threads = 1;
    o.picks = picks;
    return o;
  }
  std::vector<float> parameters() {
    std::vector<float> all;
    for (const auto& p : strategy.parameters()) {
      const auto values = to_file(p, p.value);
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }
  BatchPlan plan;
  BatchLoader loader;
  MirroredStrategy strategy;
};

/// An operation that is its functions.
class Loops final : public CustomOperation {
 public:
  using Run = std::function<void(const CustomArguments&)>;
  Loops(std::function<Shape(const Shape&)> output, Run forward, Run backward)
      : output_(std::move(output)), forward_(std::move(forward)), backward_(std::move(backward)) {}
  [[nodiscard]] std::string_view kind() const noexcept override { return "loops"; }
  [[nodiscard]] Shape output(std::span<const Shape> inputs) const override { return output_(inputs[0]); }
  void forward(const CustomArguments& arguments, const Pass&) const override { forward_(arguments); }
  void backward(const CustomArguments& arguments, const Pass&) const override { backward_(arguments); }

 private:
  std::function<Shape(const Shape&)> output_;
  Run forward_, backward_;
};

Function layer_of(std::shared_ptr<const Loops> loops) {
  return Function([loops = std::move(loops)](Value x, GraphBuilder& b) { return b.apply(loops, {x}); });
}

/// Gives what it is given, and shows what that was.
Function shown(std::vector<float>& seen) {
  return layer_of(std::make_shared<Loops>([](const Shape& shape) { return shape; },
                                          [&seen](const CustomArguments& a) {
                                            seen.assign(a.input().begin(), a.input().end());
                                            std::ranges::copy(a.input(), a.output().begin());
                                          },
                                          [](const CustomArguments& a) {
                                            const auto dx = a.input_gradient();
                                            std::copy_n(a.output_gradient().begin(), dx.size(), dx.begin());
                                          }));
}

/// Gives every other feature.
Function halve() {
  const auto each = [](const Shape& whole, const auto& body) {
    const auto rows = static_cast<std::size_t>(whole[0]), columns = static_cast<std::size_t>(whole[1]);
    for (std::size_t n = 0; n < rows; ++n)
      for (std::size_t i = 0; i < columns / 2; ++i) body(n * columns + 2 * i, n * (columns / 2) + i);
  };
  return layer_of(std::make_shared<Loops>(
      [](const Shape& shape) {
        return Shape{shape[0], shape[1] / 2};
      },
      [each](const CustomArguments& a) {
        each(a.shape(), [&](std::size_t from, std::size_t to) { a.output()[to] = a.input()[from]; });
      },
      [each](const CustomArguments& a) {
        std::ranges::fill(a.input_gradient(), 0.0F);
        each(a.shape(), [&](std::size_t from, std::size_t to) { a.input_gradient()[from] = a.output_gradient()[to]; });
      }));
}

/// Whether features (N, C·H·W) are those of a plain image (N, H, W, C), in (C, H, W) order.
bool in_channel_order(const std::vector<float>& features, const std::vector<float>& image, std::size_t pixels,
                      std::size_t channels) {
  if (features.size() != image.size()) return false;
  for (std::size_t i = 0; i < image.size(); ++i) {
    const std::size_t n = i / (pixels * channels), pixel = i / channels % pixels, c = i % channels;
    if (features[(n * channels + c) * pixels + pixel] != image[i]) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("strategies may share a model and a loss, and each has parameters of its own") {
  const MemoryDataset data = toy_images(64, {5}, 4);
  const Dense model(4);
  const SoftmaxCrossEntropy loss;
  Run first(model, loss, data), second(model, loss, data, 32, first.strategy.picks());
  CHECK(first.strategy.parameter_hash() == second.strategy.parameter_hash());
  for (int k = 0; k < 3; ++k) first.strategy.train_step(first.loader.next());
  CHECK(first.strategy.parameter_hash() != second.strategy.parameter_hash());
  for (int k = 0; k < 3; ++k) second.strategy.train_step(second.loader.next());
  CHECK(first.strategy.parameter_hash() == second.strategy.parameter_hash());
}

TEST_CASE("behind a flatten, layers that do not know of it are given features in the order of files") {
  const MemoryDataset data = toy_images(64, {6, 5, 1}, 4);
  std::vector<float> image, features, deeper;
  Sequential model(Conv2d(16, 3), shown(image), Flatten(), ReLU(), shown(features), Dense(4));
  SoftmaxCrossEntropy loss;
  Run run(model, loss, data);
  run.strategy.train_step(run.loader.next());
  for (float& number : image) number = std::max(number, 0.0F);
  CHECK(in_channel_order(features, image, 4 * 3, 16));

  Sequential nested(Conv2d(16, 3), shown(image), Sequential(Flatten()), Sequential(Sequential(shown(deeper))),
                    Dense(4));
  SoftmaxCrossEntropy nested_loss;
  Run nested_run(nested, nested_loss, data);
  nested_run.strategy.train_step(nested_run.loader.next());
  CHECK(in_channel_order(deeper, image, 4 * 3, 16));
}

TEST_CASE("a composite of a user's own, and the loss, are given features in the order of files") {
  const MemoryDataset data = toy_images(64, {6, 5, 1}, 4);
  for (const bool composite : {true, false}) {
    std::vector<float> image, features;
    Sequential model;
    model.add(Conv2d(16, 3));
    model.add(shown(image));
    if (composite) {
      model.add([](Value x, GraphBuilder& b) { return Sequential(Flatten()).build(x, b); });
    } else {
      model.add(Flatten());
    }
    SoftmaxCrossEntropy loss;
    Run run(model, loss, data);
    run.strategy.evaluate(run.loader, [&](const Batch&, const Tensor& outputs) {
      const auto x = outputs.as<const float>();
      features.assign(x.begin(), x.end());
    });
    CHECK(in_channel_order(features, image, 4 * 3, 16));
  }
}

TEST_CASE("a layer between a flatten and a dense layer may do nothing, or give other features") {
  const MemoryDataset data = toy_images(64, {6, 5, 1}, 4);
  std::vector<float> seen;
  Sequential with(Conv2d(16, 3), Flatten(), shown(seen), Dense(4)), without(Conv2d(16, 3), Flatten(), Dense(4));
  Sequential halved(Conv2d(16, 3), Flatten(), halve(), Dense(4));
  SoftmaxCrossEntropy with_loss, without_loss, halved_loss;
  Run a(with, with_loss, data), b(without, without_loss, data), c(halved, halved_loss, data);
  double first = 0, last = 0;
  for (int k = 0; k < 8; ++k) {
    a.strategy.train_step(a.loader.next());
    b.strategy.train_step(b.loader.next());
    last = c.strategy.train_step(c.loader.next()).loss;
    if (k == 0) first = last;
  }
  CHECK(relative_distance(a.parameters(), b.parameters()) < 1e-4);
  CHECK(last < first);
  CHECK(c.strategy.parameters()[2].value.shape() == Shape{4, 16 * 4 * 3 / 2});
  CHECK_FALSE(c.strategy.parameter_hash().empty());
}

TEST_CASE("what a layer keeps is each rank's until they evaluate, and then the mean of all, on all") {
  const MemoryDataset data = toy_images(72, {5}, 4);
  const Sequential model(Dense(6), RunningMean(), Dense(4));
  SoftmaxCrossEntropy loss;
  Run run(model, loss, data, 24);
  for (int k = 0; k < 3; ++k) run.strategy.train_step(run.loader.next());
  Communicator all = world().communicator();
  const auto by_rank = [&](const std::vector<float>& mine) {
    std::vector<float> every(mine.size() * static_cast<std::size_t>(all.size()));
    std::vector<float> given = mine;
    all.allgather(Tensor(std::span(given)), Tensor(std::span(every)));
    return every;
  };
  const std::vector<float> before = by_rank(running_means(run.strategy));
  std::vector<float> expected(running_means(run.strategy).size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    double sum = 0;
    for (int rank = 0; rank < all.size(); ++rank) sum += before[static_cast<std::size_t>(rank) * expected.size() + i];
    expected[i] = static_cast<float>(sum / all.size());
  }
  const Evaluation first = run.strategy.evaluate(run.loader);
  CHECK(running_means(run.strategy) == expected);
  const std::vector<float> after = by_rank(running_means(run.strategy));
  CHECK(std::ranges::equal(std::span(after).first(expected.size()), expected));
  if (all.size() > 1) CHECK(before != after);
  const Evaluation again = run.strategy.evaluate(run.loader);
  CHECK(running_means(run.strategy) == expected);  // to the bit, also on three ranks
  CHECK(again.loss == first.loss);
}

namespace {

/// Sentences of four words, some numbers beside each, and a class that is the number of times that word 3 is in it.
class Sentences final : public Dataset {
 public:
  [[nodiscard]] std::size_t size() const override { return 96; }
  [[nodiscard]] std::span<const Field> fields() const override { return fields_; }
  void read(const SampleRequest& request, Batch& batch) const override {
    const RngKey key(5, Purpose::test, 7);
    for (std::size_t row = 0; row < request.samples.size(); ++row) {
      std::int32_t count = 0;
      for (std::size_t i = 0; i < 4; ++i) {
        const auto word = static_cast<std::int32_t>(key.below(5, request.samples[row] * 4 + i));
        batch.field("tokens").as<std::int32_t>()[row * 4 + i] = word;
        count += word == 3 ? 1 : 0;
      }
      for (std::size_t i = 0; i < 3; ++i)
        batch.field("numbers").as<float>()[row * 3 + i] = key.uniform(request.samples[row] * 3 + i);
      batch.field("target").as<std::int32_t>()[row] = std::min(count, 2);
    }
  }
  [[nodiscard]] std::uint64_t fingerprint() const override { return 1; }

 private:
  std::vector<Field> fields_{
      {"tokens", {4}, DType::int32}, {"numbers", {3}, DType::float32}, {"target", {}, DType::int32}};
};

/// The mean of the rows of a table (words, width) that the tokens name.
class MeanOfRows final : public CustomOperation {
 public:
  explicit MeanOfRows(std::int64_t width) : width_(width) {}
  [[nodiscard]] std::string_view kind() const noexcept override { return "embedding"; }
  [[nodiscard]] Shape output(std::span<const Shape> inputs) const override { return {inputs[0][0], width_}; }
  void forward(const CustomArguments& a, const Pass&) const override {
    std::ranges::fill(a.output(), 0.0F);
    each(a, [&](std::size_t from, std::size_t to) { a.output()[to] += a.parameter()[from] / 4; });
  }
  void backward(const CustomArguments& a, const Pass&) const override {
    std::ranges::fill(a.parameter_gradient(), 0.0F);
    each(a, [&](std::size_t from, std::size_t to) { a.parameter_gradient()[from] += a.output_gradient()[to] / 4; });
    CHECK(a.input_gradient().empty());  // there is none of whole numbers
  }

 private:
  void each(const CustomArguments& a, const auto& body) const {
    const auto tokens = a.input<std::int32_t>();
    const auto width = static_cast<std::size_t>(width_);
    for (std::size_t i = 0; i < tokens.size(); ++i)
      for (std::size_t k = 0; k < width; ++k) body(static_cast<std::size_t>(tokens[i]) * width + k, i / 4 * width + k);
  }
  std::int64_t width_;
};

class OwnEmbedding final : public Layer {
 public:
  [[nodiscard]] std::string_view kind() const noexcept override { return "embedding"; }
  Value build(Value x, GraphBuilder& b) const override {
    return b.apply(std::make_shared<MeanOfRows>(8), {x}, {b.parameter(*this, "weight", {5, 8}, {5, 8})}, {}, this);
  }
};

}  // namespace

TEST_CASE("a model reads fields of the batch by their names, of whole numbers too") {
  const Sentences data;
  const OwnEmbedding embedding;
  const Function model([&](Value, GraphBuilder& b) {
    const Value words = embedding.build(b.input("tokens"), b), numbers = b.input("numbers");
    return Sequential(Dense(16), ReLU(), Dense(3)).build(b.apply(ConcatSpec{1}, {words, numbers}), b);
  });
  const SoftmaxCrossEntropy loss;
  Run run(model, loss, data, 24);
  double first = 0, last = 0;
  for (int epoch = 0; epoch < 40; ++epoch) {
    last = 0;
    for (std::size_t k = 0; k < run.plan.steps_per_epoch(); ++k)
      last += run.strategy.train_step(run.loader.next()).loss;
    if (epoch == 0) first = last;
  }
  CHECK(last < 0.7 * first);
  CHECK(run.strategy.evaluate(run.loader).metric > 0.8);
  CHECK_FALSE(run.strategy.parameter_hash().empty());  // throws where replicas differ
  CHECK_THROWS_AS(Run(Sequential(Flatten(), Dense(3)), loss, data),
                  InputError);  // begins with a field that is not there
}

}  // namespace own_layers_test
