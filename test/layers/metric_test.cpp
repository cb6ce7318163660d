// Metrics against plain loops; that ranks may be cut anywhere is tested in strategy.
#include <cmath>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/core/random.hpp>
#include <ronda/layers/metrics.hpp>

#include "support/catch.hpp"
#include "support/message.hpp"

using namespace ronda;
using namespace ronda::test;

namespace {

std::vector<float> numbers_of_stream(std::size_t count, std::uint64_t stream) {
  const RngKey key(12, Purpose::test, stream);
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = 6 * key.uniform(i) - 3;
  return values;
}

template <class Target>
MetricValue value_of(const SummedMetric& metric, const Shape& shape, std::vector<float> outputs,
                     std::vector<Target> targets, const Shape& target_shape, const std::vector<float>& weights) {
  std::vector<double> sums(metric.sums(shape));
  const DType type = std::is_same_v<Target, float> ? DType::float32 : DType::int32;
  metric.add(Tensor({shape, DType::float32, {}}, outputs.data()), Tensor({target_shape, type, {}}, targets.data()),
             weights, sums);
  return metric.values(sums).front();
}

}  // namespace

namespace {

const float no_number = std::nanf("");

}  // namespace

TEST_CASE("top-k accuracies and confusion matrices count what a plain loop counts") {
  constexpr std::size_t rows = 21, classes = 7;
  const std::vector<float> x = numbers_of_stream(rows * classes, 1);
  std::vector<std::int32_t> labels(rows);
  for (std::size_t n = 0; n < rows; ++n) labels[n] = static_cast<std::int32_t>(n * 3 % classes);
  labels[4] = -100;
  std::vector<float> weights(7, 1);
  weights[1] = 0.5F;
  weights[6] = 0;
  labels[20] = 99;  // of a padding row
  for (const std::int64_t k : {1, 2, 5, 7, 9}) {
    double right = 0, all = 0;
    std::vector<double> matrix(classes * classes);
    for (std::size_t n = 0; n < rows; ++n) {
      const double weight = weights[n / 3];
      if (weight == 0 || labels[n] == -100) continue;
      std::vector<std::size_t> order{0, 1, 2, 3, 4, 5, 6};
      std::ranges::sort(order, [&](std::size_t a, std::size_t b) { return x[n * classes + a] > x[n * classes + b]; });
      const auto label = static_cast<std::size_t>(labels[n]);
      right += std::ranges::find(order, label) - order.begin() < k ? weight : 0;
      matrix[label * classes + order.front()] += weight;
      all += weight;
    }
    const Shape shape{7, 3, classes}, of_labels{7, 3};
    const MetricValue top = value_of(TopKAccuracy(k), shape, x, labels, of_labels, weights);
    CHECK(top.metric == Metric{"top" + std::to_string(k), true});
    CHECK(top.number() == Approx(right / all));
    const MetricValue confusion = value_of(ConfusionMatrix(), shape, x, labels, of_labels, weights);
    CHECK(confusion.shape == Shape{classes, classes});
    CHECK(confusion.values == matrix);
  }
}

TEST_CASE("probabilities count as their likeliest class") {
  const std::vector<float> x{3, 1, 2, 1, 2, 3, 0, 5, 1};
  const std::vector<float> shares{0.5F, 0.1F, 0.4F, 0.3F, 0.6F, 0.1F, 0, 1, 0};
  const std::vector<std::int32_t> likeliest{0, 1, 1};
  const std::vector<float> weights{1, 2, 0.5F};
  for (const std::int64_t k : {1, 2})
    CHECK(value_of(TopKAccuracy(k), {3, 3}, x, shares, {3, 3}, weights).values ==
          value_of(TopKAccuracy(k), {3, 3}, x, likeliest, {3}, weights).values);
  CHECK(value_of(ConfusionMatrix(), {3, 3}, x, shares, {3, 3}, weights).values ==
        std::vector<double>{1, 0, 0, 0, 0.5, 2, 0, 0, 0});
  for (const float bad : {-0.5F, 0.4F, 1.1F, no_number})
    CHECK_THROWS_AS(value_of<float>(TopKAccuracy(1), {1, 2}, {1, 2}, {0.5F, bad}, {1, 2}, {1}), InputError);
  CHECK_THROWS_AS(value_of<float>(TopKAccuracy(1), {1, 2}, {1, 2}, {1.5F, -0.5F}, {1, 2}, {1}), InputError);
  CHECK(value_of<float>(TopKAccuracy(1), {2, 2}, {1, 2, 1, 2}, {0, 1, -1, 0}, {2, 2}, {1, 0}).number() == 1);
}

TEST_CASE("of equal outputs the first are larger, and a row with a NaN is right for nothing") {
  const auto top = [](std::int64_t k, const std::vector<float>& x, std::int32_t label) {
    return value_of<std::int32_t>(TopKAccuracy(k), {1, 3}, x, {label}, {1}, {1}).number();
  };
  CHECK(top(1, {2, 2, 1}, 0) == 1);
  CHECK(top(1, {2, 2, 1}, 1) == 0);
  CHECK(top(2, {2, 2, 1}, 1) == 1);
  for (const std::int32_t label : {0, 1, 2}) {
    CHECK(top(3, {no_number, 2, 1}, label) == 0);
    CHECK(top(3, {1, 2, no_number}, label) == 0);
    const auto confusion =
        value_of<std::int32_t>(ConfusionMatrix(), {1, 3}, {1, 2, no_number}, {label}, {1}, {1}).values;
    CHECK(confusion == std::vector<double>(9));
  }
  CHECK(std::isnan(value_of<std::int32_t>(Perplexity(), {1, 2}, {1, no_number}, {0}, {1}, {1}).number()));
}

TEST_CASE("bits per byte are the mean cross entropy over log 2") {
  const auto bits = [](std::vector<std::int32_t> labels) {
    return value_of<std::int32_t>(BitsPerByte(), {1, 3, 4}, {0, 0, 0, 0, 5, 5, 5, 5, 800, 0, 0, 0}, std::move(labels),
                                  {1, 3}, {1})
        .number();
  };
  CHECK(bits({0, 3, -100}) == Approx(2));  // four ways each time
  CHECK(bits({0, 3, 0}) == Approx(4.0 / 3));
  CHECK(std::isnan(bits({-100, -100, -100})));
}

TEST_CASE("a perplexity is exp of the mean cross entropy") {
  const auto perplexity = [](std::vector<std::int32_t> labels) {
    return value_of<std::int32_t>(Perplexity(), {1, 3, 2}, {0, 0, 800, 800, 1, 3}, std::move(labels), {1, 3}, {1})
        .number();
  };
  CHECK(perplexity({0, 1, -100}) == Approx(2));  // two ways each time
  CHECK(perplexity({-100, -100, 0}) == Approx(1 + std::exp(2.0)));
  CHECK(std::isnan(perplexity({-100, -100, -100})));
}

TEST_CASE("errors of numbers and R² equal their formulas") {
  constexpr std::size_t rows = 12, columns = 3;
  const std::vector<float> y = numbers_of_stream(rows * columns, 3), noise = numbers_of_stream(rows * columns, 4);
  std::vector<float> x(y), weights(rows, 1);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += 0.1F * noise[i];
  weights[2] = 2;
  weights[11] = 0;
  x[11 * columns] = no_number;
  double distances = 0, squares = 0, all = 0, r2 = 0;
  for (std::size_t c = 0; c < columns; ++c) {
    double weight = 0, mean = 0, spread = 0, wrong = 0;
    for (std::size_t n = 0; n + 1 < rows; ++n) {
      weight += weights[n];
      mean += double{weights[n]} * y[n * columns + c];
    }
    mean /= weight;
    for (std::size_t n = 0; n + 1 < rows; ++n) {
      const double of_target = y[n * columns + c], error = x[n * columns + c] - of_target;
      spread += weights[n] * (of_target - mean) * (of_target - mean);
      wrong += weights[n] * error * error;
      distances += weights[n] * std::abs(error);
    }
    squares += wrong;
    all += weight;
    r2 += (1 - wrong / spread) / columns;
  }
  const Shape shape{rows, columns};
  CHECK(value_of(MeanAbsoluteError(2), shape, x, y, shape, weights).number() == Approx(2 * distances / all));
  CHECK(value_of(RootMeanSquaredError(3), shape, x, y, shape, weights).number() ==
        Approx(3 * std::sqrt(squares / all)));
  CHECK(value_of(R2Score(), shape, x, y, shape, weights).number() == Approx(r2));
  const std::vector<float> constant(4, 0.1F);
  CHECK(std::isnan(value_of(R2Score(), {4, 1}, {0, 1, 2, 3}, constant, {4}, {1, 1, 1, 1}).number()));
  CHECK(std::isnan(value_of(R2Score(), {2, 1}, {0, 1}, std::vector<float>{1, 2}, {2}, {0, 0}).number()));
}

TEST_CASE("R² keeps its digits whatever the targets' mean and unit, and however the samples are divided") {
  constexpr std::size_t rows = 6000;
  const std::vector<float> spread = numbers_of_stream(rows, 5), noise = numbers_of_stream(rows, 6);
  const auto sums_of = [](std::span<float> x, std::span<float> y, std::span<float> weights) {
    const Shape shape{static_cast<std::int64_t>(x.size()), 1};
    std::vector<double> sums(R2Score().sums(shape));
    R2Score().add(Tensor({shape, DType::float32, {}}, x.data()), Tensor({shape, DType::float32, {}}, y.data()), weights,
                  sums);
    return sums;
  };
  for (const float weight : {1.0F, 0.1F, 1e9F, 1e-18F})
    for (const auto& [mean, unit] : std::vector<std::pair<double, double>>{{0, 1},
                                                                           {1e6, 1},
                                                                           {-2e6, 0.8},
                                                                           {1.5e7, 6},
                                                                           {1.7e9, 400},
                                                                           {0, 1e-19},
                                                                           {1e-12, 1e-18},
                                                                           {1e30, 1e25},
                                                                           {0, 1e37}}) {
      std::vector<float> x(rows), y(rows), weights(rows);
      for (std::size_t i = 0; i < rows; ++i) {
        y[i] = static_cast<float>(mean + unit * spread[i]);
        x[i] = static_cast<float>(y[i] + 0.5 * unit * noise[i]);
        weights[i] = weight * static_cast<float>(i % 3 + 1);
      }
      double weight_of_all = 0, center = 0, of_targets = 0, of_errors = 0;  // two passes
      for (std::size_t i = 0; i < rows; ++i) weight_of_all += weights[i];
      for (std::size_t i = 0; i < rows; ++i) center += weights[i] * (y[i] - mean) / weight_of_all;
      for (std::size_t i = 0; i < rows; ++i) {
        const double distance = y[i] - mean - center, error = double{x[i]} - y[i];
        of_targets += weights[i] * distance * distance;
        of_errors += weights[i] * error * error;
      }
      const double expected = 1 - of_errors / of_targets;
      INFO("weight " << weight << ", mean " << mean << ", unit " << unit);
      for (const std::size_t of_first : {std::size_t{0}, std::size_t{1}, rows / 3}) {
        std::vector<double> sums =
            sums_of(std::span(x).first(of_first), std::span(y).first(of_first), std::span(weights).first(of_first));
        const std::vector<double> others = sums_of(std::span(x).subspan(of_first), std::span(y).subspan(of_first),
                                                   std::span(weights).subspan(of_first));
        for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += others[i];
        CHECK(R2Score().values(sums).front().number() == Approx(expected).epsilon(1e-9));
      }
    }
  for (const float target : {0.0F, 0.1F, -1.5e7F, 1e-30F, 3e38F}) {
    const std::vector<float> equal(7, target);
    CHECK(std::isnan(
        value_of(R2Score(), {7, 1}, std::vector<float>(7, 1), equal, {7}, std::vector<float>(7, 0.3F)).number()));
  }
  CHECK(std::isnan(value_of(R2Score(), {2, 1}, {1, 2}, std::vector<float>{1, no_number}, {2}, {1, 1}).number()));
}

TEST_CASE("a metric refuses outputs, targets and names that it does not take") {
  CHECK_THROWS_AS(TopKAccuracy(0), InputError);
  for (const Shape& shape : {Shape{3}, Shape{}}) {
    CHECK_THROWS_AS(TopKAccuracy(1).sums(shape), InputError);
    CHECK_THROWS_AS(ConfusionMatrix().sums(shape), InputError);
    CHECK_THROWS_AS(R2Score().sums(shape), InputError);
  }
  CHECK_THROWS_AS(value_of<float>(TopKAccuracy(1), {2, 2}, {1, 2, 3, 4}, {1, 1}, {2}, {1, 1}), InputError);
  CHECK_THROWS_AS(value_of<std::int32_t>(TopKAccuracy(1), {2, 2}, {1, 2, 3, 4}, {1, 2}, {2}, {1, 1}), InputError);
  CHECK_THROWS_AS(value_of<std::int32_t>(R2Score(), {2, 1}, {1, 2}, {1, 2}, {2}, {1, 1}), InputError);
  CHECK_THROWS_AS(value_of<float>(R2Score(), {2, 2}, {1, 2, 3, 4}, {1, 2}, {2}, {1, 1}), InputError);

  const TopKAccuracy top1(1), top5(5), again(5);
  const ConfusionMatrix confusion;
  const Metric accuracy{"accuracy", true};
  CHECK(checked_names({&top1, &confusion}, {4, 3}, accuracy) == std::vector<std::string>{"top1", "confusion_matrix"});
  CHECK_THROWS_AS(checked_names({&top5, &again}, {4, 3}, accuracy), InputError);
  const MeanAbsoluteError mae;
  require_mentions(message_of<InputError>([&] {
                     (void)checked_names({&mae}, {4, 3}, {"mae", false});
                   }),
                   {"mae", "loss"});
  class Named final : public SummedMetric {
   public:
    explicit Named(std::string name) : name_(std::move(name)) {}
    [[nodiscard]] std::size_t sums(const Shape&) const override { return 1; }
    void add(const Tensor&, const Tensor&, std::span<const float>, std::span<double>) const override {}
    [[nodiscard]] std::vector<MetricValue> values(std::span<const double> sums) const override {
      std::vector<MetricValue> values;
      values.push_back({{name_, false}, {sums[0]}});
      return values;
    }

   private:
    std::string name_;
  };
  for (const char* name : {"", "two words", "quo\"te", "loss"}) {
    const Named named(name);
    CHECK_THROWS_AS(checked_names({&named}, {4, 3}, accuracy), InputError);
  }
}
