#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include <ronda/core/buffer.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/random.hpp>
#include <ronda/optim/make_optimizer.hpp>
#include <ronda/optim/muon.hpp>
#include <ronda/optim/rule_optimizer.hpp>
#include <ronda/optim/update_loop.hpp>
#include <ronda/optim/updater.hpp>

#include "optim/arena.hpp"
#include "support/catch.hpp"
#include "support/message.hpp"
#include "support/sanitizer.hpp"

using namespace ronda;
using namespace ronda::test;

namespace {

/// An optimizer with memory of its own.
struct Trained {
  Trained(const OptimizerOptions& options, std::size_t count, std::vector<ArenaSegment> segments = {},
          std::vector<ParameterGroup> groups = {ParameterGroup{}})
      : optimizer(make_optimizer(options)),
        values(count),
        gradients(count),
        states(optimizer->states().size(), std::vector<float>(count)) {
    OptimizerBindings bindings;
    bindings.values = values.data();
    for (auto& state : states) bindings.states.push_back(state.data());
    if (segments.empty())
      segments.push_back({"w", {Shape{static_cast<std::int64_t>(count)}, DType::float32, {}}, 0, 0});
    bindings.segments = std::move(segments);
    bindings.groups = std::move(groups);
    optimizer->bind(std::move(bindings));
  }
  /// Of the whole arena, as an updater does it.
  void step(const StepScalars& scalars, Stream& stream) {
    if (optimizer->needs_norms()) optimizer->measure(gradients.data(), scalars, stream);
    optimizer->step(whole(), scalars, stream);
  }
  [[nodiscard]] ArenaRange whole() { return {values.data(), gradients.data(), values.size()}; }

  std::unique_ptr<Optimizer> optimizer;
  std::vector<float> values, gradients;
  std::vector<std::vector<float>> states;
};

float random_at(std::string_view what, std::size_t index) { return RngKey(1, Purpose::test, what).normal(index); }

/// One element, updated in float64 by the lines of PyTorch's documentation of each optimizer, v 2.x.
struct Reference {
  Reference(const OptimizerOptions& given, double start)
      : o(completed(given)), row(*std::ranges::find(optimizer_rows(), o.name, &OptimizerRow::name)), p(start) {}

  void step(double g, double rate, int t) {
    const double decay = o.weight_decay.value_or(row.weight_decay);
    if (o.name == "muon") rate *= 0.015;  // of a vector it is AdamW
    if (row.decoupled)
      p -= rate * decay * p;
    else
      g += decay * p;
    if (o.name == "sgd") {
      p -= rate * g;
    } else if (o.name == "momentum" || o.name == "nesterov" || o.name == "lars") {  // LARS of a vector is momentum
      buffer = t > 1 ? *o.momentum * buffer + g : g;
      p -= rate * (o.name == "nesterov" ? g + *o.momentum * buffer : buffer);
    } else if (o.name == "rmsprop") {
      v = *o.alpha * v + (1 - *o.alpha) * g * g;
      m = *o.alpha * m + (1 - *o.alpha) * g;
      buffer = *o.momentum * buffer + g / (std::sqrt(v - (o.centered ? m * m : 0)) + *o.epsilon);
      p -= rate * buffer;
    } else if (o.name == "adagrad") {
      v += g * g;
      p -= rate / (1 + (t - 1) * *o.lr_decay) * g / (std::sqrt(*o.initial_accumulator_value + v) + *o.epsilon);
    } else if (o.name == "adadelta") {
      v = *o.rho * v + (1 - *o.rho) * g * g;
      const double change = std::sqrt(buffer + *o.epsilon) / std::sqrt(v + *o.epsilon) * g;
      buffer = *o.rho * buffer + (1 - *o.rho) * change * change;
      p -= rate * change;
    } else if (o.name == "lion") {
      const double direction = *o.beta1 * m + (1 - *o.beta1) * g;
      p -= rate * ((direction > 0) - (direction < 0));
      m = *o.beta2 * m + (1 - *o.beta2) * g;
    } else if (o.name == "nadam") {
      const auto mu = [&](int i) { return *o.beta1 * (1 - 0.5 * std::pow(0.96, i * *o.momentum_decay)); };
      product *= mu(t);
      m = *o.beta1 * m + (1 - *o.beta1) * g;
      v = *o.beta2 * v + (1 - *o.beta2) * g * g;
      const double along = (1 - mu(t)) / (1 - product) * g + mu(t + 1) / (1 - product * mu(t + 1)) * m;
      p -= rate * along / (std::sqrt(v / (1 - std::pow(*o.beta2, t))) + *o.epsilon);
    } else if (o.name == "adabelief") {
      m = *o.beta1 * m + (1 - *o.beta1) * g;
      v = *o.beta2 * v + (1 - *o.beta2) * (g - m) * (g - m) + *o.epsilon;
      const double m_hat = m / (1 - std::pow(*o.beta1, t)), v_hat = v / (1 - std::pow(*o.beta2, t));
      p -= rate * m_hat / (std::sqrt(v_hat) + *o.epsilon);
    } else {
      m = *o.beta1 * m + (1 - *o.beta1) * g;
      v = *o.beta2 * v + (1 - *o.beta2) * g * g;
      const double m_hat = m / (1 - std::pow(*o.beta1, t)), v_hat = v / (1 - std::pow(*o.beta2, t));
      p -= rate * m_hat / (std::sqrt(v_hat) + *o.epsilon);
    }
  }

  OptimizerOptions o;
  const OptimizerRow& row;
  double p, buffer = 0, m = 0, v = 0, product = 1;
};

}  // namespace

TEST_CASE("20 steps of every optimizer follow PyTorch's formulas") {
  constexpr std::size_t count = 37;
  constexpr double sums_of = 4;  // the arena holds sums of so many samples
  CpuStream stream;
  for (const std::optional<double> decay : {std::optional<double>(), std::optional<double>(0.1)})
    for (OptimizerOptions options : every_optimizer(decay)) {
      if (optimizer_reads(options.name, "beta1")) options.beta1 = 0.85;
      if (optimizer_reads(options.name, "beta2")) options.beta2 = 0.95;
      if (optimizer_reads(options.name, "lr_decay")) options.lr_decay = 0.1;
      Trained trained(options, count);
      std::vector<Reference> expected;
      for (std::size_t i = 0; i < count; ++i) {
        trained.values[i] = random_at("start", i);
        expected.emplace_back(options, trained.values[i]);
      }
      for (int t = 1; t <= 20; ++t) {
        const double rate = 0.1 / t;
        for (std::size_t i = 0; i < count; ++i) {
          trained.gradients[i] = random_at("gradient", static_cast<std::size_t>(t) * count + i);
          expected[i].step(trained.gradients[i] / sums_of, rate, t);
        }
        trained.step({rate, 1 / sums_of, static_cast<std::uint64_t>(t)}, stream);
      }
      INFO(text_of(options) << " with decay " << decay.value_or(-1));
      for (std::size_t i = 0; i < count; ++i)
        REQUIRE(trained.values[i] == Approx(expected[i].p).epsilon(1e-6).margin(1e-6));
    }
}

TEST_CASE("20 steps of LARS follow its paper's formulas, with a rate for each matrix and none for a bias") {
  constexpr std::size_t matrix = 21, bias = 5, offset = 32;
  constexpr double sums_of = 4, momentum = 0.8, decay = 0.01, trust = 0.001, rate = 5;
  Trained trained({.name = "lars", .momentum = momentum, .weight_decay = decay}, offset + 16,
                  {{"w", {Shape{3, 7}, DType::float32, {}}, 0, 0}, {"b", {Shape{5}, DType::float32, {}}, offset, 0}});
  std::vector<double> p(offset + bias), v(offset + bias);
  const auto fill = [&](std::vector<float>& numbers, const char* what, std::size_t step) {
    for (std::size_t i = 0; i < offset + bias; ++i)
      if (i < matrix || i >= offset) numbers[i] = random_at(what, step * 64 + i);
  };
  fill(trained.values, "start", 0);
  std::ranges::copy_n(trained.values.begin(), static_cast<std::ptrdiff_t>(p.size()), p.begin());
  CpuStream stream(2);
  for (std::uint64_t t = 1; t <= 20; ++t) {
    fill(trained.gradients, "gradient", t);
    double p_norm = 0, g_norm = 0;
    for (std::size_t i = 0; i < matrix; ++i) {
      p_norm += p[i] * p[i];
      g_norm += std::pow(trained.gradients[i] / sums_of, 2);
    }
    const double ratio = trust * std::sqrt(p_norm) / (std::sqrt(g_norm) + decay * std::sqrt(p_norm));
    for (std::size_t i = 0; i < p.size(); ++i) {
      v[i] = momentum * v[i] + (i < matrix ? ratio : 1) * (trained.gradients[i] / sums_of + decay * p[i]);
      p[i] -= rate * v[i];
    }
    trained.step({rate, 1 / sums_of, t}, stream);
  }
  for (std::size_t i = 0; i < p.size(); ++i) REQUIRE(trained.values[i] == Approx(p[i]).epsilon(1e-6).margin(1e-6));
}

TEST_CASE("20 steps of LAMB follow its paper's formulas, with a rate for each matrix and none for a bias") {
  constexpr std::size_t matrix = 21, bias = 5, offset = 32;
  constexpr double sums_of = 4, beta1 = 0.85, beta2 = 0.95, decay = 0.01, rate = 0.1;
  Trained trained({.name = "lamb", .beta1 = beta1, .beta2 = beta2, .weight_decay = decay}, offset + 16,
                  {{"w", {Shape{3, 7}, DType::float32, {}}, 0, 0}, {"b", {Shape{5}, DType::float32, {}}, offset, 0}});
  std::vector<double> p(offset + bias), m(p.size()), v(p.size()), u(p.size());
  const auto fill = [&](std::vector<float>& numbers, const char* what, std::size_t step) {
    for (std::size_t i = 0; i < offset + bias; ++i)
      if (i < matrix || i >= offset) numbers[i] = random_at(what, step * 64 + i);
  };
  fill(trained.values, "start", 0);
  std::ranges::copy_n(trained.values.begin(), static_cast<std::ptrdiff_t>(p.size()), p.begin());
  CpuStream stream(2);
  for (std::uint64_t t = 1; t <= 20; ++t) {
    fill(trained.gradients, "gradient", t);
    double p_norm = 0, u_norm = 0;
    for (std::size_t i = 0; i < p.size(); ++i) {
      const double g = trained.gradients[i] / sums_of;
      m[i] = beta1 * m[i] + (1 - beta1) * g;
      v[i] = beta2 * v[i] + (1 - beta2) * g * g;
      const double m_hat = m[i] / (1 - std::pow(beta1, t)), v_hat = v[i] / (1 - std::pow(beta2, t));
      u[i] = m_hat / (std::sqrt(v_hat) + 1e-6) + decay * p[i];
      p_norm += i < matrix ? p[i] * p[i] : 0;
      u_norm += i < matrix ? u[i] * u[i] : 0;
    }
    for (std::size_t i = 0; i < p.size(); ++i)
      p[i] -= rate * (i < matrix ? std::sqrt(p_norm) / std::sqrt(u_norm) : 1) * u[i];
    trained.step({rate, 1 / sums_of, t}, stream);
  }
  for (std::size_t i = 0; i < p.size(); ++i) REQUIRE(trained.values[i] == Approx(p[i]).epsilon(1e-6).margin(1e-6));
}

TEST_CASE(
    "20 steps of Muon are its authors' on matrices and kernels of convolutions, whatever their layout, and AdamW's on "
    "others") {
  // The authors' muon.py in float64 by torch 1.13, with weight decay 0.1.
  struct Case {
    TensorDesc desc;
    std::vector<double> expected;
  };
  const Case cases[] = {
      {{Shape{3, 2}, DType::float32, {}}, {-0.96977324, -0.43947862, -0.03706800, 0.53847414, 0.84336698, -0.95630743}},
      {{Shape{2, 5}, DType::float32, {}},
       {-0.98666309, -0.49906868, -0.05109909, 0.59243304, 0.94238832, -0.93226749, -0.46895951, 0.01135068, 0.42378085,
        1.00578388}},
      {{Shape{2, 5}, DType::float32, Layout::parse("ba")},
       {-0.98666309, -0.49906868, -0.05109909, 0.59243304, 0.94238832, -0.93226749, -0.46895951, 0.01135068, 0.42378085,
        1.00578388}},
      {{Shape{2, 5}, DType::float32, Layout::parse("ab4b")},
       {-0.98666309, -0.49906868, -0.05109909, 0.59243304, 0.94238832, -0.93226749, -0.46895951, 0.01135068, 0.42378085,
        1.00578388}},
      {{Shape{2, 2, 1, 2}, DType::float32, {}},
       {-1.01141670, -0.46030947, -0.06695686, 0.56184847, 0.91716015, -0.89690666, -0.46655533, 0.04666397}},
      {{Shape{3}, DType::float32, {}}, {-0.99927698, -0.50013350, -0.00097301}}};
  for (const auto& [desc, expected] : cases)
    for (const int threads : {1, 3}) {
      const std::size_t count = expected.size();
      Trained trained({.name = "muon", .weight_decay = 0.1}, 64, {{"w", desc, 0, 0}});
      const auto set = [&](std::vector<float>& arena, const std::function<float(std::size_t)>& number) {
        std::vector<float> plain(count);
        for (std::size_t i = 0; i < count; ++i) plain[i] = number(i);
        reorder(Tensor({desc.shape, DType::float32, {}}, plain.data()), Tensor(desc, arena.data()));
      };
      set(trained.values, [](std::size_t i) { return (static_cast<float>(i % 5) - 2) / 2; });
      CpuStream stream(threads);
      for (std::uint64_t t = 1; t <= 20; ++t) {
        set(trained.gradients, [&](std::size_t i) { return static_cast<float>((i * 7 + t * 3) % 11) - 5; });
        trained.step({0.02, 0.25, t}, stream);
      }
      std::vector<float> found(count);
      reorder(Tensor(desc, trained.values.data()), Tensor({desc.shape, DType::float32, {}}, found.data()));
      INFO(desc.text());
      for (std::size_t i = 0; i < count; ++i) CHECK(found[i] == Approx(expected[i]).epsilon(1e-6).margin(1e-6));
    }
}

TEST_CASE("Newton and Schulz bring the singular values of a matrix near 1, and keep zeros") {
  for (const auto& [rows, columns] : {std::pair{33U, 70U}, {70U, 33U}, {64U, 64U}, {1U, 5U}, {5U, 1U}, {1U, 1U}}) {
    std::vector<float> matrix(std::size_t{rows} * columns), zeros(matrix.size());
    double squares = 0;
    for (std::size_t i = 0; i < matrix.size(); ++i) {
      matrix[i] = random_at("matrix", i);
      squares += matrix[i] * matrix[i];
    }
    NewtonSchulz orthogonalize;
    orthogonalize.reserve(rows, columns);
    CpuStream stream(2);
    // X Xᵀ has the squares of the singular values, of which five steps leave from about 0.65 to 1.25: their mean is
    // its trace over its size, and none is larger than that of a vector that was multiplied with it a few times.
    orthogonalize(matrix.data(), rows, columns, std::sqrt(squares), stream);
    double trace = 0;
    for (const float x : matrix) trace += x * x;
    const double mean = trace / std::min(rows, columns);
    CHECK(mean > 0.4);
    CHECK(mean < 1.6);
    std::vector<double> v(columns, 1), u(rows);
    double length = 0;
    for (int i = 0; i < 50; ++i) {
      for (std::size_t r = 0; r < rows; ++r) {
        u[r] = 0;
        for (std::size_t c = 0; c < columns; ++c) u[r] += matrix[r * columns + c] * v[c];
      }
      double squared = 0;
      for (std::size_t c = 0; c < columns; ++c) {
        v[c] = 0;
        for (std::size_t r = 0; r < rows; ++r) v[c] += matrix[r * columns + c] * u[r];
        squared += v[c] * v[c];
      }
      length = std::sqrt(squared);
      for (double& each : v) each /= length;
    }
    CHECK(std::sqrt(length) < 1.3);  // the largest singular value
    orthogonalize(zeros.data(), rows, columns, 0, stream);
    CHECK(std::ranges::all_of(zeros, [](float x) { return x == 0; }));
  }
}

TEST_CASE("the bits of an update depend neither on threads nor on ranges") {
  constexpr std::size_t count = 9 * 14565;      // 2^17 + 13
  std::vector<float> starts(1009), drawn(997);  // drawing a number takes longer than an update
  for (std::size_t i = 0; i < starts.size(); ++i) starts[i] = random_at("start", i);
  for (std::size_t i = 0; i < drawn.size(); ++i) drawn[i] = random_at("gradient", i);
  for (const OptimizerOptions& options : every_optimizer(0.01)) {
    const auto train = [&](int threads, std::size_t cut) {
      Trained trained(options, count, {{"w", {Shape{count / 9, 9}, DType::float32, {}}, 0, 0}});
      CpuStream stream(threads);
      for (std::size_t i = 0; i < count; ++i) trained.values[i] = starts[i % starts.size()];
      for (std::uint64_t t = 1; t <= (sanitized ? 1 : 3); ++t) {
        for (std::size_t i = 0; i < count; ++i) trained.gradients[i] = drawn[(i + t) % drawn.size()];
        float* const values = trained.values.data();
        float* const gradients = trained.gradients.data();
        const StepScalars scalars{0.01, 0.5, t};
        if (trained.optimizer->needs_norms()) trained.optimizer->measure(gradients, scalars, stream);
        trained.optimizer->step({values, gradients, cut}, scalars, stream);
        trained.optimizer->step({values + cut, gradients + cut, count - cut}, scalars, stream);
      }
      return trained.values;
    };
    const auto alone = train(1, count);
    REQUIRE(train(2, count) == alone);
    REQUIRE(train(3, 0) == alone);
    REQUIRE(train(2, 1237) == alone);
  }
}

TEST_CASE("optimizers that keep the states of a part each have the bits of one that keeps all") {
  CpuStream stream(1);
  for (const OptimizerOptions& options : every_optimizer(0.01)) {
    INFO(text_of(options));
    const auto whole = make_optimizer(options);
    Arena all(*whole), parts(*whole);
    constexpr std::size_t cut = 1040;  // in the last parameter
    const std::array<Range, 2> ranges{Range{0, cut}, Range{cut, parts.values.size()}};
    std::array<std::unique_ptr<Optimizer>, 2> optimizers;
    std::vector<std::vector<float>> memory;
    for (std::size_t i = 0; i < 2; ++i) {
      OptimizerBindings bindings = parts.bindings();
      bindings.states.clear();
      for (std::size_t state = 0; state < whole->states().size(); ++state)
        bindings.states.push_back(memory.emplace_back(ranges[i].size()).data());
      bindings.kept = ranges[i];
      optimizers[i] = make_optimizer(options);
      if (whole->has_two_passes())
        CHECK_THROWS_AS(optimizers[i]->bind(bindings), LogicError);
      else
        optimizers[i]->bind(bindings);
    }
    if (whole->has_two_passes()) continue;
    whole->bind(all.bindings());
    for (std::uint64_t t = 1; t <= 3; ++t) {
      all.fill_gradients(t);
      parts.fill_gradients(t);
      const StepScalars scalars{0.01, 0.5, t};
      if (whole->needs_norms()) {
        whole->measure(all.gradients.data(), scalars, stream);
        for (const auto& optimizer : optimizers) optimizer->measure(parts.gradients.data(), scalars, stream);
      }
      whole->step(all.whole(), scalars, stream);
      for (std::size_t i = 0; i < 2; ++i)
        optimizers[i]->step(
            {parts.values.data() + ranges[i].begin, parts.gradients.data() + ranges[i].begin, ranges[i].size()},
            scalars, stream);
    }
    CHECK(parts.values == all.values);
    std::size_t shown = 0;
    for (const auto& optimizer : optimizers) {
      const auto pieces = optimizer->pieces();
      REQUIRE(pieces.size() == all.segments.size() * whole->states().size());
      for (std::size_t i = 0; i < pieces.size(); ++i) {
        const ArenaSegment& segment = all.segments[i / whole->states().size()];
        const float* const expected = all.states[i % whole->states().size()].data() + segment.offset + pieces[i].first;
        CHECK(std::equal(pieces[i].elements, pieces[i].elements + pieces[i].count, expected));
        shown += pieces[i].count;
      }
    }
    CHECK(shown == (5 + 16 + 33 + 4000) * whole->states().size());
  }
}

TEST_CASE("an update that sums gradients and writes copies has the bits of one that is given the sums") {
  constexpr std::size_t count = 1237, start = 64;  // neither a multiple of 16 nor the arena's first
  constexpr std::size_t part = count - start;
  for (const OptimizerOptions& options : every_optimizer(0.01)) {
    Trained given(options, count), summing(options, count);
    std::vector<std::vector<float>> ranks(3, std::vector<float>(count));
    Buffer copies = Buffer::host(2 * 2048 * sizeof(float));  // aligned, as the replicas of a node are
    auto* const first = reinterpret_cast<float*>(copies.data());
    Buffer values = Buffer::host(count * sizeof(float));
    CpuStream stream(2);
    for (std::size_t i = 0; i < count; ++i) given.values[i] = random_at("start", i);
    const std::vector<float> untouched = given.values;
    std::ranges::copy(given.values, reinterpret_cast<float*>(values.data()));
    OptimizerBindings bindings;
    bindings.values = reinterpret_cast<float*>(values.data());
    bindings.segments = {{"w", {Shape{count}, DType::float32, {}}, 0, 0}};
    for (auto& state : summing.states) bindings.states.push_back(state.data());
    summing.optimizer->bind(bindings);
    for (std::uint64_t t = 1; t <= 3; ++t) {
      for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t rank = 0; rank < 3; ++rank) ranks[rank][i] = random_at("gradient", (i * 3 + rank + t) % 997);
        given.gradients[i] = ranks[0][i] + ranks[1][i] + ranks[2][i];
      }
      const std::array<const float*, 2> more{ranks[1].data() + start, ranks[2].data() + start};
      const std::array<float*, 2> targets{first, first + 2048};
      const StepScalars scalars{0.01, 0.5, t};
      given.optimizer->step({given.values.data() + start, given.gradients.data() + start, part}, scalars, stream);
      summing.optimizer->step({bindings.values + start, ranks[0].data() + start, part, more, targets}, scalars, stream);
      INFO(text_of(options) << " in step " << t);
      REQUIRE(std::equal(given.values.begin(), given.values.end(), bindings.values));
      REQUIRE(std::equal(given.values.begin() + start, given.values.end(), targets[0]));
      REQUIRE(std::equal(given.values.begin() + start, given.values.end(), targets[1]));
      REQUIRE(std::equal(untouched.begin(), untouched.begin() + start, bindings.values));
    }
  }
}

TEST_CASE("groups have rates and decays of their own, and frozen ones stay") {
  const TensorDesc four{Shape{4}, DType::float32, {}};
  const std::vector<ArenaSegment> segments{
      {"a", four, 0, 0}, {"b", four, 16, 1}, {"c", four, 32, 2}, {"d", four, 48, 0}};
  Trained trained({.name = "sgd", .weight_decay = 0.5}, 64, segments,
                  {ParameterGroup{}, {.rate_factor = 10, .weight_decay = 0}, {.frozen = true}});
  std::fill(trained.values.begin(), trained.values.end(), 2.0F);
  std::fill(trained.gradients.begin(), trained.gradients.end(), 1.0F);
  CpuStream stream;
  trained.optimizer->step(trained.whole(), {0.125, 1, 1}, stream);
  REQUIRE(trained.values[0] == 2 - 0.125F * (1 + 0.5F * 2));
  REQUIRE(trained.values[16] == 2 - 1.25F);
  REQUIRE(trained.values[32] == 2);
  REQUIRE(trained.values[51] == trained.values[0]);
  REQUIRE(trained.optimizer->squared_norm(trained.whole(), stream) == 12);  // without the frozen ones
}

TEST_CASE("padding stays zero") {
  CpuStream stream;
  for (const OptimizerOptions& options : every_optimizer(0.1)) {
    const std::vector<ArenaSegment> segments{{"a", {Shape{2, 3}, DType::float32, Layout::parse("ab4b")}, 0, 0},
                                             {"b", {Shape{5}, DType::float32, {}}, 16, 0}};
    Trained trained(options, 32, segments);
    const std::vector<std::size_t> real{0, 1, 2, 4, 5, 6, 16, 17, 18, 19, 20};
    for (const std::size_t i : real) trained.values[i] = trained.gradients[i] = 1;
    for (std::uint64_t t = 1; t <= 5; ++t) trained.step({0.1, 1, t}, stream);
    for (std::size_t i = 0; i < 32; ++i)
      REQUIRE((trained.values[i] == 0) == (std::find(real.begin(), real.end(), i) == real.end()));
  }
}

TEST_CASE("the norm is that of the gradients, with the same bits on any number of threads") {
  constexpr std::size_t count = (1 << 17) + 3;
  Trained trained({}, count);
  double expected = 0;
  for (std::size_t i = 0; i < count; ++i) {
    trained.gradients[i] = random_at("gradient", i);
    expected += static_cast<double>(trained.gradients[i]) * trained.gradients[i];
  }
  CpuStream one(1), three(3);
  const double norm = trained.optimizer->squared_norm(trained.whole(), one);
  REQUIRE(norm == Approx(expected).epsilon(1e-12));
  REQUIRE(trained.optimizer->squared_norm(trained.whole(), three) == norm);
  trained.gradients[1000] = std::numeric_limits<float>::quiet_NaN();
  REQUIRE(std::isnan(trained.optimizer->squared_norm(trained.whole(), three)));
  trained.gradients[1000] = std::numeric_limits<float>::max();
  REQUIRE(std::isfinite(trained.optimizer->squared_norm(trained.whole(), three)));
}

TEST_CASE("clipping shortens long gradients alone") {
  REQUIRE(clip_factor(0.5, 1) == 1);
  REQUIRE(clip_factor(0, 1) == 1);
  REQUIRE(clip_factor(4, 1) == 1 / (4 + 1e-6));
  REQUIRE(clip_factor(std::numeric_limits<double>::infinity(), 1) == 0);
  REQUIRE(std::isnan(clip_factor(std::numeric_limits<double>::quiet_NaN(), 1)));
}

TEST_CASE("states are shown under the parameters' names and layouts") {
  struct Names final : StateVisitor {
    void visit(const State& state) override { seen[state.name] = state.tensor; }
    std::map<std::string, Tensor> seen;
  } visitor;
  const TensorDesc blocked{Shape{2, 3}, DType::float32, Layout::parse("ab4b")};
  const Trained trained({.name = "adam"}, 32, {{"a", blocked, 0, 0}, {"b", {Shape{5}, DType::float32, {}}, 16, 0}});
  trained.optimizer->visit(visitor);
  REQUIRE(visitor.seen.size() == 4);
  REQUIRE(visitor.seen.at("a.exp_avg").desc() == blocked);
  REQUIRE(visitor.seen.at("b.exp_avg_sq").pointer<const float>() == trained.states[1].data() + 16);
}

TEST_CASE("bindings that contradict themselves are refused") {
  const TensorDesc four{Shape{4}, DType::float32, {}};
  const auto bind = [](std::vector<ArenaSegment> segments, std::vector<ParameterGroup> groups) {
    Trained({}, 16, std::move(segments), std::move(groups));
  };
  REQUIRE_THROWS_AS(bind({{"a", four, 0, 0}, {"b", four, 3, 0}}, {{}}), LogicError);
  REQUIRE_THROWS_AS(bind({{"a", four, 0, 1}}, {{}}), LogicError);
  REQUIRE_THROWS_AS(bind({{"a", {Shape{4}, DType::float64, {}}, 0, 0}}, {{}}), LogicError);
  REQUIRE_THROWS_AS(bind({{"a", four, 0, 0}}, {{.rate_factor = -1}}), InputError);
  REQUIRE_THROWS_AS(bind({{"a", four, 0, 0}}, {{.weight_decay = std::nan("")}}), InputError);
  REQUIRE_THROWS_AS(make_optimizer({.name = "adam"})->bind({}), LogicError);
}

TEST_CASE("an optimizer is made by name from values that can work") {
  for (const OptimizerOptions& options : every_optimizer()) {
    REQUIRE(make_optimizer(options)->name() == options.name);
    REQUIRE(default_learning_rate(options.name) > 0);
  }
  require_mentions(message_of<InputError>([] { (void)make_optimizer({.name = "tiger"}); }),
                   {"'tiger'", optimizer_names().c_str()});
  REQUIRE_THROWS_AS(default_learning_rate("tiger"), InputError);
  for (const double bad : {-0.1, 1.0, std::nan("")}) {
    REQUIRE_THROWS_AS(make_optimizer({.momentum = bad}), InputError);
    REQUIRE_THROWS_AS(make_optimizer({.beta1 = bad}), InputError);
    REQUIRE_THROWS_AS(make_optimizer({.beta2 = bad}), InputError);
  }
  REQUIRE_THROWS_AS(make_optimizer({.lr_decay = -0.1}), InputError);
  require_mentions(message_of<InputError>([] { (void)make_optimizer({.epsilon = 0}); }), {"epsilon", "more than 0"});
  REQUIRE_THROWS_AS(make_optimizer({.weight_decay = -1}), InputError);
  // What a float32 cannot hold, or rounds to 1.
  REQUIRE_THROWS_AS(make_optimizer({.name = "adam", .epsilon = 1e39}), InputError);
  REQUIRE_THROWS_AS(make_optimizer({.name = "momentum", .momentum = 1 - 1e-9}), InputError);
  require_mentions(message_of<InputError>([] { (void)make_optimizer({.name = "adam", .epsilon = 1e-40}); }),
                   {"1.2e-38", "found 1e-40"});
}

TEST_CASE("what an optimizer would not use is refused, with those that do") {
  require_mentions(message_of<InputError>([] { (void)make_optimizer({.momentum = 0.9}); }),
                   {".optimizer.momentum", ".optimizer.name = sgd", "momentum, nesterov"});
  require_mentions(message_of<InputError>([] { (void)make_optimizer({.name = "adam", .centered = true}); }),
                   {".optimizer.centered", "rmsprop"});
  REQUIRE(make_optimizer({.weight_decay = 0.1})->name() == "sgd");  // all have one
}

namespace {

/// A rule that Ronda does not have: p -= rate · sign(g).
struct SignDescent {
  static constexpr std::array<std::string_view, 0> states{};
  static constexpr bool needs_norms = false;
  struct Scalars {
    float rate;
  };
  [[nodiscard]] Scalars scalars(const RuleStep& step) const { return {static_cast<float>(step.learning_rate)}; }
  RONDA_HOST_DEVICE_INLINE static void apply(const Scalars& s, float& value, float sum, float&, float&) {
    value -= sum > 0 ? s.rate : sum < 0 ? -s.rate : 0;
  }
};

}  // namespace

TEST_CASE("a rule of the user's own updates on the processor; kernels for half types and GPUs he makes himself") {
  RuleOptimizer<SignDescent> optimizer("sign", SignDescent(), 0, update_each<SignDescent>);
  std::vector<float> values{1, 2, 3}, gradients{5, 0, -2};
  const OptimizerBindings bindings{.values = values.data(), .segments = {{"a", {Shape{3}, DType::float32, {}}, 0, 0}}};
  optimizer.bind(bindings);
  const auto context = make_cpu_context(1);
  CpuStream stream;
  const LayerArenas layers{.gradients = reinterpret_cast<const std::byte*>(gradients.data())};
  const UpdaterOptions options{.schedule = Schedule({.learning_rate = 0.5})};
  const auto updater = make_host_updater(*context, optimizer, bindings, layers, 3, options, stream);
  StepControl total;
  total.weight = 1;
  updater->step({values.data(), gradients.data(), 3}, &total, stream);
  CHECK(values == std::vector<float>{0.5, 2, 3.5});
  LayerArenas halves = layers;
  halves.dtype = DType::bfloat16;
  require_mentions(message_of<InputError>(
                       [&] { (void)make_host_updater(*context, optimizer, bindings, halves, 3, options, stream); }),
                   {"sign", "KernelUpdater", "make_updater"});
}
