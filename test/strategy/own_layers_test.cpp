// What layers of a user's own may count on, and what they cannot break.
#include "support/catch.hpp"
#include "support/ranks.hpp"
#include "support/running_mean.hpp"
#include "support/toy_data.hpp"

#include <ronda/core/error.hpp>
#include <ronda/layers/layers.hpp>
#include <ronda/optim/make_optimizer.hpp>
#include <ronda/runtime/strategy/mirrored_strategy.hpp>

#include <algorithm>
#include <memory>
#include <utility>

using namespace ronda;
using namespace ronda::test;

namespace {

/// A strategy for a model and its place in the data.
struct Run {
  Run(Layer& model, Loss& loss, const Dataset& data, std::size_t global_batch = 32)
      : plan(data.size(), global_batch, shard_of(world().communicator())),
        loader(data, SampleOrder(data.size(), 1, true), plan),
        strategy(world().communicator(), model, loss, make_optimizer({.name = "sgd"}),
                 Schedule({.learning_rate = 0.05}), options(data)) {}
  [[nodiscard]] MirroredOptions options(const Dataset& data) const {
    MirroredOptions o = MirroredOptions::for_data(data, plan);
    o.threads = 1;
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

/// Gives what it is given, and shows what that was.
class Shown final : public Layer {
 public:
  explicit Shown(std::vector<float>& seen) : seen_(seen) {}
  [[nodiscard]] std::string_view kind() const noexcept override { return "shown"; }
  TensorDesc plan(const TensorDesc& input, Planner&) override { return input; }
  void bind(const Bindings&) override {}
  const Tensor& forward(const Tensor& input, const Pass&) override {
    const auto x = input.as<const float>();
    seen_.assign(x.begin(), x.end());
    return input_ = input;
  }
  const Tensor& backward(const Tensor& gradient, const Pass&) override { return gradient_ = gradient; }

 private:
  std::vector<float>& seen_;
  Tensor input_, gradient_;
};

/// Gives every other feature.
class Halve final : public Layer {
 public:
  [[nodiscard]] std::string_view kind() const noexcept override { return "halve"; }
  TensorDesc plan(const TensorDesc& input, Planner& planner) override {
    input_desc_ = input;
    desc_ = {Shape{input.shape[0], input.shape[1] / 2}, input.dtype, {}};
    output_id_ = planner.buffer("halve output", desc_.bytes(), Lifetime::pass);
    gradient_id_ = planner.buffer("halve gradient", input.bytes(), Lifetime::gradient);
    return desc_;
  }
  void bind(const Bindings& bindings) override {
    output_ = bindings.tensor(output_id_, desc_);
    gradient_ = bindings.tensor(gradient_id_, input_desc_);
  }
  const Tensor& forward(const Tensor& input, const Pass&) override {
    each([&](std::size_t from, std::size_t to) { output_.as<float>()[to] = input.as<const float>()[from]; });
    return output_;
  }
  const Tensor& backward(const Tensor& dy, const Pass&) override {
    std::ranges::fill(gradient_.as<float>(), 0.0F);
    each([&](std::size_t from, std::size_t to) { gradient_.as<float>()[from] = dy.as<const float>()[to]; });
    return gradient_;
  }

 private:
  void each(const auto& body) const {
    const auto rows = static_cast<std::size_t>(desc_.shape[0]), half = static_cast<std::size_t>(desc_.shape[1]),
               whole = static_cast<std::size_t>(input_desc_.shape[1]);
    for (std::size_t n = 0; n < rows; ++n)
      for (std::size_t i = 0; i < half; ++i) body(n * whole + 2 * i, n * half + i);
  }
  TensorDesc input_desc_, desc_;
  BufferId output_id_{}, gradient_id_{};
  Tensor output_, gradient_;
};

/// A composite of a user's own around one layer.
class Around final : public Layer {
 public:
  explicit Around(std::unique_ptr<Layer> inner) : inner_(std::move(inner)) {}
  [[nodiscard]] std::string_view kind() const noexcept override { return "around"; }
  TensorDesc plan(const TensorDesc& input, Planner& planner) override { return planner.plan(*inner_, input); }
  void bind(const Bindings& bindings) override { inner_->bind(bindings); }
  const Tensor& forward(const Tensor& input, const Pass& pass) override { return inner_->forward(input, pass); }
  const Tensor& backward(const Tensor& dy, const Pass& pass) override { return inner_->backward(dy, pass); }

 private:
  std::unique_ptr<Layer> inner_;
};

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

TEST_CASE("a model or a loss that a strategy has is refused by every other") {
  const MemoryDataset data = toy_images(64, {5}, 4);
  Dense model(4), other(4);
  SoftmaxCrossEntropy loss, other_loss;
  const auto first = std::make_unique<Run>(model, loss, data);
  CHECK_THROWS_AS(Run(model, other_loss, data), Error);
  CHECK_THROWS_AS(Run(other, loss, data), Error);
  for (int k = 0; k < 3; ++k) first->strategy.train_step(first->loader.next());
  CHECK_FALSE(first->strategy.parameter_hash().empty());
}

TEST_CASE("behind a flatten, layers that do not know of it are given features in the order of files") {
  const MemoryDataset data = toy_images(64, {6, 5, 1}, 4);
  std::vector<float> image, features, deeper;
  Sequential model(Conv2d(16, 3), Shown(image), Flatten(), ReLU(), Shown(features), Dense(4));
  SoftmaxCrossEntropy loss;
  Run run(model, loss, data);
  run.strategy.train_step(run.loader.next());
  for (float& number : image) number = std::max(number, 0.0F);
  CHECK(in_channel_order(features, image, 4 * 3, 16));

  Sequential nested(Conv2d(16, 3), Shown(image), Sequential(Flatten()), Sequential(Sequential(Shown(deeper))),
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
    model.add(Shown(image));
    if (composite) {
      auto inner = std::make_unique<Sequential>();
      inner->add(Flatten());
      model.add(Around(std::move(inner)));
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
  Sequential with(Conv2d(16, 3), Flatten(), Shown(seen), Dense(4)), without(Conv2d(16, 3), Flatten(), Dense(4));
  Sequential halved(Conv2d(16, 3), Flatten(), Halve(), Dense(4));
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
  RunningMean* layer = nullptr;
  Sequential model;
  model.add(Dense(6));
  auto running = std::make_unique<RunningMean>();
  layer = running.get();
  model.add(std::move(running));
  model.add(Dense(4));
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
  const std::vector<float> before = by_rank(layer->means());
  std::vector<float> expected(layer->means().size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    double sum = 0;
    for (int rank = 0; rank < all.size(); ++rank) sum += before[static_cast<std::size_t>(rank) * expected.size() + i];
    expected[i] = static_cast<float>(sum / all.size());
  }
  const Evaluation first = run.strategy.evaluate(run.loader);
  CHECK(layer->means() == expected);
  const std::vector<float> after = by_rank(layer->means());
  CHECK(std::ranges::equal(std::span(after).first(expected.size()), expected));
  if (all.size() > 1) CHECK(before != after);
  const Evaluation again = run.strategy.evaluate(run.loader);
  CHECK(layer->means() == expected);  // to the bit, also on three ranks
  CHECK(again.loss == first.loss);
}
