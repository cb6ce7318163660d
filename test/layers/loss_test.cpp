// The losses against PyTorch's numbers, their formulas in float64 and finite differences.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <ronda/core/buffer.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/random.hpp>
#include <ronda/layers/losses.hpp>

#include "support/catch.hpp"
#include "support/message.hpp"

using namespace ronda;
using namespace ronda::test;

namespace {

constexpr float scale = 0.25F;  // of loss gradients
const float nan_number = std::nanf("");

std::vector<float> drawn_numbers(std::size_t count, std::uint64_t stream, float largest) {
  const RngKey key(11, Purpose::test, stream);
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = largest * (2 * key.uniform(i) - 1);
  return values;
}

/// A loss of outputs and targets of its own.
template <class Target>
struct LossBench {
  LossBench(const Loss& loss, const Shape& shape, std::vector<float> x, std::vector<Target> y, std::vector<float> w)
      : desc{shape, DType::float32, {}},
        outputs(std::move(x)),
        targets(std::move(y)),
        weights(std::move(w)),
        gradient(outputs.size(), 7),
        primitives(make_reference_primitives()),
        operation(loss.make(desc, *primitives)),
        scratch(Buffer::host(operation->scratch_bytes())) {
    target_shape = targets.size() == outputs.size()
                       ? shape
                       : Shape(std::span(shape.begin(), static_cast<std::size_t>(shape.rank() - 1)));
  }
  StepControl run(int threads = 1) {
    StepControl sums;
    CpuStream stream(threads);
    const Tensor weight{std::span(weights)};
    const DType type = std::is_same_v<Target, float> ? DType::float32 : DType::int32;
    operation->run(Tensor(desc, outputs.data()), Tensor({target_shape, type, {}}, targets.data()),
                   Tensor(desc, gradient.data()), scratch.data(),
                   {.stream = stream, .weights = &weight, .loss_scale = scale, .control = &sums, .on_ready = {}});
    return sums;
  }
  double mean() {
    const StepControl sums = run();
    return sums.loss / sums.weight;
  }
  /// What an optimizer would be given: of the mean.
  std::vector<double> mean_gradient() {
    const double weight = run().weight;
    std::vector<double> mean(gradient.begin(), gradient.end());
    for (double& each : mean) each /= weight * scale;
    return mean;
  }

  TensorDesc desc;
  Shape target_shape;
  std::vector<float> outputs;
  std::vector<Target> targets;
  std::vector<float> weights, gradient;
  std::unique_ptr<Primitives> primitives;
  std::unique_ptr<LossOperation> operation;
  Buffer scratch;
};

template <class Target>
void check_torch(LossBench<Target> bench, double loss, const std::vector<double>& gradient) {
  CHECK(bench.mean() == Approx(loss).epsilon(1e-6));  // PyTorch computes in float32
  const std::vector<double> found = bench.mean_gradient();
  for (std::size_t i = 0; i < gradient.size(); ++i) CHECK(found[i] == Approx(gradient[i]).margin(2e-7));
}

/// Of the sum of losses, by each output that is away from a kink.
template <class Target>
void check_differences(LossBench<Target>& bench) {
  bench.run();
  const std::vector<float> gradient = bench.gradient;
  constexpr float step = 0x1p-8F;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const float before = bench.outputs[i];
    const auto loss_at = [&](float x) {
      bench.outputs[i] = x;
      return bench.run().loss;
    };
    const double up = loss_at(before + step), down = loss_at(before - step), middle = loss_at(before);
    const double right = (up - middle) / step, left = (middle - down) / step;
    if (std::abs(right - left) > 0.02) continue;  // between the slopes of an |x − y|
    CHECK(gradient[i] == Approx(scale * (up - down) / (2 * step)).margin(3e-4));
  }
}

struct NumberLoss {
  std::shared_ptr<const Loss> loss;
  std::function<double(double x, double y, std::size_t last)> value;  // last: place on the last axis
  double unit = 1;                                                    // of the metric
  bool binary = false;
};

/// Each with its formula.
std::vector<NumberLoss> number_losses() {
  const auto huber = [](double delta) {
    return [delta](double x, double y, std::size_t) {
      const double d = std::abs(x - y);
      return d <= delta ? d * d / 2 : delta * d - delta * delta / 2;
    };
  };
  const auto bce = [](double positive) {
    return [positive](double x, double y, std::size_t) {
      const double p = 1 / (1 + std::exp(-x));
      return -positive * y * std::log(p) - (1 - y) * std::log(1 - p);
    };
  };
  const auto smooth = [](double x, double y, std::size_t) {
    const double d = std::abs(x - y);
    return 3 * (d < 0.5 ? d * d : d - 0.25);
  };
  const auto last_three = [bce](double x, double y, std::size_t last) {
    return bce(std::array{1.0, 0.0, 3.0}[last])(x, y, 0);
  };
  std::vector<NumberLoss> losses;
  const auto add = [&](auto loss, auto value, double unit = 1, bool binary = false) {
    losses.push_back({std::make_shared<decltype(loss)>(std::move(loss)), value, unit, binary});
  };
  add(MeanSquaredError(), [](double x, double y, std::size_t) { return (x - y) * (x - y); });
  add(
      MeanSquaredError(2.5), [](double x, double y, std::size_t) { return 6.25 * (x - y) * (x - y); }, 2.5);
  add(L1Loss(), [](double x, double y, std::size_t) { return std::abs(x - y); });
  add(
      L1Loss(2), [](double x, double y, std::size_t) { return 2 * std::abs(x - y); }, 2);
  add(HuberLoss(), huber(1));
  add(HuberLoss(0.5), huber(0.5));
  add(SmoothL1Loss(0.5, 3), smooth, 3);
  add(BCEWithLogitsLoss(), bce(1), 1, true);
  add(BCEWithLogitsLoss({3}), bce(3), 1, true);
  add(BCEWithLogitsLoss({1, 0, 3}), last_three, 1, true);
  return losses;
}

}  // namespace

TEST_CASE("losses of numbers have PyTorch's values and gradients") {
  // torch 1.13: loss(x, y), and its gradient by x.
  const Shape shape{3, 2};
  const std::vector<float> x{0.5F, -1.25F, 3, 0, -0.75F, 2}, y{0.25F, 0.5F, -1, 0, -0.5F, 1},
      shares{1, 0, 0, 0.75F, 1, 1}, ones{1, 1, 1};
  const auto check = [&](const Loss& loss, double mean, const std::vector<double>& gradient) {
    check_torch(LossBench<float>(loss, shape, x, y, ones), mean, gradient);
  };
  check(MeanSquaredError(), 3.36458325, {0.0833333358, -0.583333373, 1.33333337, 0, -0.0833333358, 0.333333343});
  check(L1Loss(), 1.20833337, {0.166666672, -0.166666672, 0.166666672, 0, -0.166666672, 0.166666672});
  check(HuberLoss(), 0.885416687, {0.0416666679, -0.166666672, 0.166666672, 0, -0.0416666679, 0.166666672});
  check(HuberLoss(0.5), 0.510416687, {0.0416666679, -0.0833333358, 0.0833333358, 0, -0.0416666679, 0.0833333358});
  check(SmoothL1Loss(), 0.885416687, {0.0416666679, -0.166666672, 0.166666672, 0, -0.0416666679, 0.166666672});
  check(SmoothL1Loss(0.5), 1.02083337, {0.0833333358, -0.166666672, 0.166666672, 0, -0.0833333358, 0.166666672});
  check(SmoothL1Loss(0), 1.20833337, {0.166666672, -0.166666672, 0.166666672});
  check_torch(LossBench<float>(BCEWithLogitsLoss(), shape, x, shares, ones), 0.955256641,
              {-0.0629234388, 0.0371166877, 0.158762351, -0.0416666679, -0.113196455, -0.0198671613});
  check_torch(LossBench<float>(BCEWithLogitsLoss({3, 0.5F}), shape, x, shares, ones), 1.43834031,
              {-0.188770339, 0.0371166877, 0.158762351, -0.010416667, -0.339589357, -0.00993358064});
}

TEST_CASE("cross entropy has PyTorch's values and gradients, with weights, ignored labels and sequences") {
  // torch 1.13: CrossEntropyLoss(weight=…, ignore_index=…, label_smoothing=…).
  const std::vector<float> x{0.5F, -1.25F, 2, 3, 0, -0.5F, -0.75F, 2, 1, 0.25F, 0.125F, -4};
  const std::vector<std::int32_t> labels{2, 1, -100, 0}, ones_are_ignored{2, 1, 1, 0};
  const std::vector<float> classes{1, 2.5F, 0.5F};
  const auto check = [&](const Loss& loss, const std::vector<std::int32_t>& y, double mean,
                         const std::vector<double>& gradient) {
    check_torch(LossBench<std::int32_t>(loss, {4, 3}, x, y, {1, 1, 1, 1}), mean, gradient);
    check_torch(LossBench<std::int32_t>(loss, {2, 2, 3}, x, y, {1, 1}), mean, gradient);
    check_torch(LossBench<std::int32_t>(loss, {1, 2, 2, 3}, x, y, {1}), mean, gradient);
  };
  check(SoftmaxCrossEntropy(), labels, 1.31657207,
        {0.0589400604, 0.010242248, -0.0691823214, 0.308646441, -0.317966729, 0.00932031404, 0, 0, 0, -0.157595158,
         0.155088395, 0.00250677066});
  check(SoftmaxCrossEntropy({.weight = classes}), labels, 2.11220646,
        {0.0221025217, 0.00384084275, -0.0259433687, 0.578712046, -0.596187651, 0.0174755882, 0, 0, 0, -0.118196368,
         0.116316296, 0.00188007788});
  check(SoftmaxCrossEntropy({.weight = classes, .label_smoothing = 0.1}), labels, 2.11024714,
        {0.0174529441, -0.0163523499, -0.0011005894, 0.543372095, -0.555865526, 0.0124933934, 0, 0, 0, -0.0971362516,
         0.099360168, -0.00222391984});
  check(SoftmaxCrossEntropy({.ignore_index = 1, .label_smoothing = 0.1}), ones_are_ignored, 0.588468194,
        {0.0717434213, -0.00130329654, -0.0704401433, 0, 0, 0, 0, 0, 0, -0.203059405, 0.215965927, -0.0129065122});
}

TEST_CASE("cross entropy with probabilities as targets has PyTorch's values and gradients") {
  // torch 1.13: CrossEntropyLoss(weight=…, label_smoothing=…) of float targets.
  const std::vector<float> x{0.3F, -1.2F, 2, 1.5F, 0.25F, -0.75F}, y{0.25F, 0, 0.75F, 0.5F, 0.4F, 0.1F};
  const std::vector<float> classes{0.5F, 2, 1};
  const auto check = [&](const Loss& loss, double mean, const std::vector<double>& gradient) {
    check_torch(LossBench<float>(loss, {2, 3}, x, y, {1, 1}), mean, gradient);
    check_torch(LossBench<float>(loss, {1, 2, 3}, x, y, {1}), mean, gradient);
  };
  check(SoftmaxCrossEntropy(), 0.84117186, {-0.05034056, 0.01665877, 0.03368181, 0.10922018, -0.09708171, -0.01213847});
  check(SoftmaxCrossEntropy(0.1), 0.92367184,
        {-0.05450723, -0.0000079, 0.05451515, 0.11755352, -0.09374836, -0.02380514});
  check(SoftmaxCrossEntropy({.weight = classes}), 0.99711794,
        {0.00282701, 0.01457643, -0.01740342, 0.28810319, -0.28164396, -0.00645924});
  check(SoftmaxCrossEntropy({.weight = classes, .label_smoothing = 0.2}), 1.25980115,
        {0.00301548, -0.05111848, 0.04810304, 0.29763392, -0.26796758, -0.02966638});

  // Weights of samples; a share of 0 costs nothing where the class is impossible; accuracy is about the likeliest.
  LossBench<float> bench(SoftmaxCrossEntropy(), {3, 3}, {200, 0, -200, 1, 2, 3, 0, 0, nan_number},
                         {0.75F, 0.25F, 0, 0.1F, 0.2F, 0.7F, 1, 0, 0}, {0.5F, 2, 0});
  const StepControl sums = bench.run();
  CHECK(sums.weight == 2.5);
  CHECK(sums.metric == 2.5);
  const double log_sum = std::log(1 + std::exp(-1) + std::exp(-2));
  CHECK(sums.loss == Approx(0.5 * 0.25 * 200 + 2 * (0.1 * (log_sum + 2) + 0.2 * (log_sum + 1) + 0.7 * log_sum)));
  for (std::size_t c = 6; c < 9; ++c) CHECK(bench.gradient[c] == 0);

  // One-hot ones are labels.
  LossBench<float> hot(SoftmaxCrossEntropy(0.1), {2, 3}, x, {0, 0, 1, 1, 0, 0}, {1, 3});
  LossBench<std::int32_t> labels(SoftmaxCrossEntropy(0.1), {2, 3}, x, {2, 0}, {1, 3});
  CHECK(hot.run().loss == Approx(labels.run().loss).epsilon(1e-6));
  for (std::size_t i = 0; i < 6; ++i) CHECK(hot.gradient[i] == Approx(labels.gradient[i]).margin(1e-7));
  check_differences(hot);
}

TEST_CASE("losses of numbers equal their formulas, and their gradients finite differences") {
  for (const NumberLoss& each : number_losses())
    for (const Shape& shape : {Shape{4, 3}, Shape{3, 5, 3}, Shape{5, 2, 2, 3}}) {
      const auto rows = static_cast<std::size_t>(shape[0]), columns = static_cast<std::size_t>(shape.count()) / rows;
      auto x = drawn_numbers(rows * columns, 1, 3), y = drawn_numbers(rows * columns, 2, 3);
      if (each.binary)
        for (float& share : y) share = std::abs(share) / 3;
      std::vector<float> weights(rows, 1);
      weights[0] = 0.5F;
      weights[rows - 1] = 0;
      std::fill(x.end() - static_cast<std::ptrdiff_t>(columns), x.end(), nan_number);  // a padding row
      double loss = 0, metric = 0, weight = 0;
      for (std::size_t n = 0; n + 1 < rows; ++n) weight += weights[n];
      for (std::size_t i = 0; i < (rows - 1) * columns; ++i) {
        const double share = weights[i / columns] / static_cast<double>(columns);
        loss += share * each.value(x[i], y[i], i % 3);
        metric +=
            share * (each.binary ? double((x[i] > 0) == (y[i] > 0.5F)) : each.unit * std::abs(double{x[i]} - y[i]));
      }
      LossBench<float> bench(*each.loss, shape, x, y, weights);
      const StepControl sums = bench.run();
      CHECK(sums.loss == Approx(loss).epsilon(1e-9));
      CHECK(sums.metric == Approx(metric).epsilon(1e-12));
      CHECK(sums.weight == weight);
      for (std::size_t i = (rows - 1) * columns; i < bench.gradient.size(); ++i) CHECK(bench.gradient[i] == 0);
      if (each.unit == 1) {
        LossBench<float> smaller(*each.loss, shape, drawn_numbers(rows * columns, 1, 3), y, weights);
        check_differences(smaller);
      }
    }
}

TEST_CASE("cross entropy equals its formula, and its gradient finite differences") {
  const std::vector<float> classes{0.5F, 2, 0, 1, 3, 0.25F};
  for (const auto& options :
       {CrossEntropyOptions{}, CrossEntropyOptions{.label_smoothing = 0.1}, CrossEntropyOptions{.weight = classes},
        CrossEntropyOptions{.weight = classes, .ignore_index = 3, .label_smoothing = 0.2}})
    for (const std::int64_t rows_of_sample : {1, 3}) {
      const std::size_t rows = 4 * static_cast<std::size_t>(rows_of_sample);
      const std::vector<float> x = drawn_numbers(rows * 6, 5, 3);
      std::vector<std::int32_t> labels(rows);
      for (std::size_t n = 0; n < rows; ++n) labels[n] = static_cast<std::int32_t>(n * 5 % 6);
      labels[1] = options.ignore_index;
      std::fill(labels.end() - rows_of_sample, labels.end(), 77);  // of a padding row, which may hold anything
      const std::vector<float> weights{1, 0.5F, 2, 0};
      const auto weight_of = [&](std::size_t c) { return options.weight.empty() ? 1.0 : options.weight[c]; };
      double loss = 0, weight = 0;
      for (std::size_t n = 0; n < rows; ++n) {
        const double of_sample = weights[n / static_cast<std::size_t>(rows_of_sample)];
        if (labels[n] == options.ignore_index || of_sample == 0) continue;
        const auto label = static_cast<std::size_t>(labels[n]);
        double sum = 0;
        for (std::size_t c = 0; c < 6; ++c) sum += std::exp(double{x[n * 6 + c]});
        for (std::size_t c = 0; c < 6; ++c) {
          const double share = options.label_smoothing / 6 + (c == label ? 1 - options.label_smoothing : 0);
          loss += of_sample * share * weight_of(c) * (std::log(sum) - x[n * 6 + c]);
        }
        weight += of_sample * weight_of(label);
      }
      const Shape shape = rows_of_sample == 1 ? Shape{4, 6} : Shape{4, rows_of_sample, 6};
      LossBench<std::int32_t> bench(SoftmaxCrossEntropy(options), shape, x, labels, weights);
      const StepControl sums = bench.run();
      CHECK(sums.loss == Approx(loss).epsilon(1e-6));  // float32 exponentials and logarithms
      CHECK(sums.weight == Approx(weight).epsilon(1e-12));
      check_differences(bench);
    }
}

TEST_CASE("sums and gradients of a loss have the same bits on any number of threads") {
  const Shape shape{211, 301};
  const auto x = drawn_numbers(211 * 301, 1, 3), y = drawn_numbers(211 * 301, 2, 1);
  std::vector<std::int32_t> labels(211);
  for (std::size_t n = 0; n < labels.size(); ++n) labels[n] = static_cast<std::int32_t>(n);
  const auto check = [](auto bench) {
    const StepControl one = bench.run(1);
    const std::vector<float> gradient = bench.gradient;
    const StepControl four = bench.run(4);
    CHECK((one.loss == four.loss && one.metric == four.metric && one.weight == four.weight));
    CHECK(gradient == bench.gradient);
  };
  check(LossBench<float>(HuberLoss(), shape, x, y, std::vector<float>(211, 1)));
  check(LossBench<std::int32_t>(SoftmaxCrossEntropy(0.1), shape, x, labels, std::vector<float>(211, 1)));
}

TEST_CASE("a NaN in the outputs makes loss and gradient NaN, and is right for nothing") {
  for (const NumberLoss& each : number_losses()) {
    LossBench<float> bench(*each.loss, {2, 3}, {1, 1, nan_number, 1, 1, 1}, {1, 0, 0, 1, 1, 1}, {1, 1});
    const StepControl sums = bench.run();
    CHECK(std::isnan(sums.loss));
    CHECK(std::isnan(bench.gradient[2]));
    CHECK_FALSE(std::isnan(bench.gradient[3]));
    if (each.binary) CHECK(sums.metric == Approx(4.0 / 3));  // not the output of 1 for 0, nor the NaN
  }
  for (const std::int32_t label : {0, 1, 2}) {
    LossBench<std::int32_t> bench(SoftmaxCrossEntropy({.weight = {1, 2, 3}}), {1, 3}, {1, nan_number, 2}, {label}, {1});
    const StepControl sums = bench.run();
    CHECK((std::isnan(sums.loss) && sums.metric == 0));
    for (const float d : bench.gradient) CHECK(std::isnan(d));
  }
}

TEST_CASE("where no row counts, sums and gradients are zero") {
  const auto check = [](auto bench) {
    const StepControl sums = bench.run();
    CHECK((sums.loss == 0 && sums.weight == 0 && sums.metric == 0));
    CHECK(std::ranges::all_of(bench.gradient, [](float d) { return d == 0; }));
  };
  const std::vector<float> x(6, nan_number);
  for (const NumberLoss& each : number_losses()) check(LossBench<float>(*each.loss, {2, 3}, x, x, {0, 0}));
  check(LossBench<std::int32_t>(SoftmaxCrossEntropy(), {2, 3}, x, {5, -1}, {0, 0}));
  check(LossBench<std::int32_t>(SoftmaxCrossEntropy(), {1, 2, 3}, x, {-100, -100}, {1}));
}

TEST_CASE("large logits cost what they should, and neither overflow nor vanish") {
  LossBench<float> bench(BCEWithLogitsLoss(), {4, 1}, {80, -80, 1e30F, -30}, {0, 1, 1, 0}, {1, 0, 1, 1});
  const StepControl sums = bench.run();
  CHECK(sums.loss == Approx(80 + std::exp(-30.0)));
  CHECK(bench.gradient[0] == scale);
  CHECK(bench.gradient[2] == 0);
  CHECK(bench.gradient[3] == Approx(scale * std::exp(-30.0)).epsilon(1e-6));
}

TEST_CASE("ten equal outputs cost ln 10, and a label that is none is refused") {
  LossBench<std::int32_t> bench(SoftmaxCrossEntropy(), {1, 10}, std::vector<float>(10, 1), {3}, {1});
  CHECK(bench.run().loss == Approx(std::log(10.0)).epsilon(1e-6));
  for (const std::int32_t label : {10, -1, std::numeric_limits<std::int32_t>::min()}) {
    bench.targets[0] = label;
    require_mentions(message_of<InputError>([&] { bench.run(); }), {std::to_string(label), "10 classes"});
  }
}

TEST_CASE("a loss refuses outputs, targets and options that it does not take") {
  const auto primitives = make_reference_primitives();
  const auto made = [&](const Loss& loss, const Shape& shape) {
    return loss.make({shape, DType::float32, {}}, *primitives);
  };
  for (const NumberLoss& each : number_losses()) {
    CHECK_THROWS_AS(made(*each.loss, {3}), InputError);
    CHECK_THROWS_AS(each.loss->make({{2, 3}, DType::int32, {}}, *primitives), InputError);
    CHECK_FALSE(each.loss->runs_on_any_device());
    LossBench<float> bench(*each.loss, {3, 3}, std::vector<float>(9), std::vector<float>(9), {1, 1, 1});
    bench.target_shape = {9};
    CHECK_THROWS_AS(bench.run(), InputError);
    bench.target_shape = {9, 1};
    CHECK_THROWS_AS(bench.run(), InputError);
  }
  LossBench<float> flat(L1Loss(), {3, 1}, {1, 2, 3}, {1, 1, 1}, {1, 1, 1});
  flat.target_shape = {3};
  CHECK(flat.run().loss == 3);
  for (const double bad : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    CHECK_THROWS_AS(MeanSquaredError(bad), InputError);
    CHECK_THROWS_AS(HuberLoss(bad), InputError);
    if (bad != 0) CHECK_THROWS_AS(SmoothL1Loss(bad), InputError);
  }
  CHECK_THROWS_AS(BCEWithLogitsLoss({-1}), InputError);
  require_mentions(message_of<InputError>([&] { made(BCEWithLogitsLoss({1, 2}), {4, 3}); }), {"2 pos_weights", "3"});
  CHECK_THROWS_AS(SoftmaxCrossEntropy(1), InputError);
  CHECK_THROWS_AS(SoftmaxCrossEntropy(-0.1), InputError);
  CHECK_THROWS_AS(SoftmaxCrossEntropy({.weight = {1, nan_number}}), InputError);
  require_mentions(message_of<InputError>([&] {
                     made(SoftmaxCrossEntropy({.weight = {1, 2}}), {4, 3});
                   }),
                   {"2 weights", "3 classes"});
  CHECK_THROWS_AS(made(SoftmaxCrossEntropy(), {3}), InputError);
  CHECK(SoftmaxCrossEntropy({.ignore_index = 0}).runs_on_any_device());
  CHECK_FALSE(SoftmaxCrossEntropy({.weight = {1, 2}}).runs_on_any_device());
}
