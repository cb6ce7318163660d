// The updater made of kernels, as a GPU has it, run on the host, and the processor's own: the same bits as the
// optimizer.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/core/number.hpp>
#include <ronda/core/random.hpp>
#include <ronda/optim/make_optimizer.hpp>
#include <ronda/optim/rules.hpp>

#include "optim/arena.hpp"
#include "support/catch.hpp"
#include "support/message.hpp"

using namespace ronda;
using namespace ronda::test;

namespace {

/// Kernels as a GPU runs them, one call after the other.
struct BackwardLaunch {
  template <class Body>
  static void for_each(Stream&, std::int64_t count, const Body& body) {
    for (std::int64_t i = count; i-- > 0;) body(i);  // in any order
  }
};

const MakeUpdater makers[] = {make_kernel_updater<BackwardLaunch>, make_host_updater};

/// The rates 0.1, 0.05, 0.025, and no other.
Schedule halving() {
  return Schedule({.name = "step", .learning_rate = 0.1, .total_steps = 2, .step_factor = 0.5, .step_every = 1});
}

/// An updater with an arena and its sums.
struct Update {
  Update(const MakeUpdater& make, Optimizer& optimizer, Arena& given, const Clipping& clip, bool check) : arena(given) {
    optimizer.bind(arena.bindings());
    updater = make(*context, optimizer, arena.bindings(),
                   {.gradients = reinterpret_cast<const std::byte*>(arena.gradients.data())}, arena.values.size(),
                   {.schedule = halving(),
                    .loss_scale = 0.25,
                    .clip_norm = clip.norm,
                    .clip_value = clip.value,
                    .check_gradients = check},
                   stream);
  }
  void step() { updater->step(arena.whole(), &total, stream); }
  [[nodiscard]] const UpdateOutcome& outcome() const { return *updater->outcome(); }

  Arena& arena;
  CpuStream stream{2};
  std::unique_ptr<DeviceContext> context = make_cpu_context(2);
  StepControl total;
  std::unique_ptr<Updater> updater;
};

}  // namespace

TEST_CASE("of a sparse table the touched rows are updated as PyTorch's SparseAdam and SGD, and the others stay") {
  constexpr std::size_t rows = 9, width = 7;
  for (const char* name : {"sgd", "adam"}) {
    const auto optimizer = make_optimizer({.name = name});
    const bool adam = std::string_view(name) == "adam";
    std::vector<float> values(rows * width), gradients(rows * width);
    std::vector<std::vector<float>> states(optimizer->states().size(), std::vector<float>(rows * width));
    std::vector<double> p(rows * width), m(rows * width), v(rows * width);
    for (std::size_t i = 0; i < values.size(); ++i) p[i] = values[i] = RngKey(1, Purpose::test, "values").normal(i);
    std::vector<std::int32_t> list(TouchedRows::length(rows));
    TouchedRows touched(list);
    OptimizerBindings bindings{.values = values.data(), .states = {}, .segments = {}, .device = {}};
    for (auto& state : states) bindings.states.push_back(state.data());
    bindings.segments.push_back(
        {.name = "embedding1.weight", .desc = {Shape{rows, width}, DType::float32, {}}, .touched = &touched});
    optimizer->bind(bindings);
    CpuStream stream;
    double squares = 0;
    for (std::uint64_t step = 1; step <= 4; ++step) {
      touched.clear();
      std::ranges::fill(gradients, 0.0F);
      squares = 0;
      for (std::size_t row = step; row < rows; row += step + 1) {
        touched.add(static_cast<std::int32_t>(rows - 1 - row));
        for (std::size_t i = (rows - 1 - row) * width; i < (rows - row) * width; ++i) {
          const double g = gradients[i] = RngKey(step, Purpose::test, "gradients").normal(i);
          squares += g * g;
          if (!adam) {
            p[i] -= 0.1 * g;
            continue;
          }
          const auto t = static_cast<double>(step);
          m[i] += 0.1 * (g - m[i]);
          v[i] += 0.001 * (g * g - v[i]);
          p[i] -= 0.1 * std::sqrt(1 - std::pow(0.999, t)) / (1 - std::pow(0.9, t)) * m[i] / (std::sqrt(v[i]) + 1e-8);
        }
      }
      const ArenaRange whole{values.data(), gradients.data(), values.size()};
      CHECK(optimizer->squared_norm(whole, stream) == Approx(squares));
      CHECK(optimizer->gradients_are_finite(whole, stream));
      CHECK(optimizer->step(whole, {.learning_rate = 0.1, .step = step}, stream));
      for (std::size_t i = 0; i < values.size(); ++i)
        REQUIRE(values[i] == Approx(p[i]).epsilon(1e-4).margin(1e-5));  // roundings of float32, of epsilon's place
      for (std::size_t row = 0; step == 1 && row < rows; ++row)
        if (std::ranges::find(touched.rows(), static_cast<std::int32_t>(row)) == touched.rows().end())
          for (std::size_t i = row * width; i < (row + 1) * width; ++i)
            REQUIRE(values[i] == RngKey(1, Purpose::test, "values").normal(i));
    }
  }
}

TEST_CASE("an updater gives the optimizer's bits, for every rule, groups and clipping included") {
  for (const MakeUpdater& make : makers)
    for (const OptimizerOptions& options : &make == makers ? every_rule(0.01) : every_optimizer(0.01))
      for (const Clipping& clip : clippings) {
        const auto optimizer = make_optimizer(options), updated = make_optimizer(options);
        Arena ours(*optimizer), theirs(*updated);
        optimizer->bind(ours.bindings());
        Update update(make, *updated, theirs, clip, false);
        CpuStream stream;
        for (std::uint64_t t = 1; t <= 5; ++t) {
          ours.fill_gradients(t);
          theirs.fill_gradients(t);
          update.total.loss = 3;
          update.total.weight = 12;
          update.step();
          const double rate = halving().rate(t - 1);
          double factor = 1 / (12 * 0.25);
          if (clip.norm > 0) {
            const double norm = std::sqrt(optimizer->squared_norm(ours.whole(), stream)) * factor;
            REQUIRE(update.outcome().gradient_norm == Approx(norm).epsilon(1e-12));  // another order of float64 sums
            factor *= clip_factor(update.outcome().gradient_norm, clip.norm);
          }
          clip_sums(ours.gradients, clip, factor);
          const StepScalars scalars{rate, factor, t};
          if (optimizer->needs_norms()) optimizer->measure(ours.gradients.data(), scalars, stream);
          optimizer->step(ours.whole(), scalars, stream);
          INFO(text_of(options) << ", clipped by norm " << clip.norm << " or value " << clip.value << ", update " << t);
          REQUIRE(update.outcome().applied == 1);
          REQUIRE(update.outcome().updates == t);
          REQUIRE(update.outcome().learning_rate == rate);
          REQUIRE(theirs.values == ours.values);
          REQUIRE(theirs.states == ours.states);
        }
      }
}

TEST_CASE("an optimizer that no kernel can apply says what it is for") {
  const auto optimizer = make_optimizer({.name = "muon"});
  Arena arena(*optimizer);
  require_mentions(message_of<InputError>([&] { Update(makers[0], *optimizer, arena, {}, false); }),
                   {"'muon'", "processor alone", ".device = cpu"});
}

TEST_CASE("clipping by value is PyTorch's clip_grad_value_ of the mean gradient") {
  for (const MakeUpdater& make : makers) {
    const auto optimizer = make_optimizer({.name = "sgd"});
    Arena arena(*optimizer);
    Update update(make, *optimizer, arena, {.value = 0.25}, false);
    update.total.weight = 12;
    arena.fill_gradients(1);
    arena.gradients[1] = std::numeric_limits<float>::infinity();
    arena.gradients[2] = -1e30F;
    arena.gradients[3] = 0.75F;  // the limit itself
    arena.gradients[4] = std::nanf("");
    const auto before = arena.values;
    update.step();
    for (std::size_t i = 0; i < 4; ++i) {
      const double mean = arena.gradients[i] / (12 * 0.25);
      CHECK(arena.values[i] == Approx(before[i] - 0.1 * std::clamp(mean, -0.25, 0.25)).epsilon(1e-6));
    }
    CHECK(std::isnan(arena.values[4]));
    CHECK(update.outcome().spoiled == 1);
  }
}

TEST_CASE("an updater changes its range alone") {
  for (const MakeUpdater& make : makers) {
    const auto optimizer = make_optimizer({.name = "adam"}), updated = make_optimizer({.name = "adam"});
    Arena ours(*optimizer), theirs(*updated);
    optimizer->bind(ours.bindings());
    Update update(make, *updated, theirs, {}, false);
    update.total.loss = 3;
    update.total.weight = 12;
    ours.fill_gradients(1);
    theirs.fill_gradients(1);
    constexpr std::size_t first = 64, count = 1024;
    const auto part = [&](Arena& arena) {
      return ArenaRange{arena.values.data() + first, arena.gradients.data() + first, count};
    };
    update.updater->step(part(theirs), &update.total, update.stream);
    optimizer->step(part(ours), {0.1, 1 / (12 * 0.25), 1}, update.stream);
    CHECK(theirs.values == ours.values);
    CHECK(theirs.states == ours.states);
  }
}

TEST_CASE("an updater leaves everything as it is where there is nothing to learn from") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  struct Case {
    double loss, weight;
    float gradient;
    bool finite;
  };
  for (const MakeUpdater& make : makers)
    for (const double clip : {0.0, 1e9}) {
      const auto optimizer = make_optimizer({.name = "adam"});
      Arena arena(*optimizer);
      Update update(make, *optimizer, arena, {.norm = clip}, true);
      const auto values = arena.values;
      for (const Case& c :
           {Case{1, 0, 1, true}, Case{infinity, 2, 1, false}, Case{std::nan(""), 2, 1, false},
            Case{1, 2, std::nanf(""), false}, Case{1, 2, std::numeric_limits<float>::infinity(), false}}) {
        arena.fill_gradients(1);
        arena.gradients[20] = c.gradient;
        update.total.loss = c.loss;
        update.total.weight = c.weight;
        update.step();
        CHECK(update.outcome().applied == 0);
        CHECK(update.outcome().finite == (c.finite ? 1 : 0));
        CHECK(update.outcome().updates == 0);
        CHECK(update.outcome().gradient_norm == 0);
        CHECK(arena.values == values);
      }
      arena.fill_gradients(1);
      arena.gradients[20] = std::numeric_limits<float>::max();  // large, not infinite; its square is beyond a float
      update.total.loss = 1;
      update.step();
      CHECK(update.outcome().applied == 1);
      if (clip == 0) CHECK(update.outcome().gradient_norm == 0);  // checked, and not asked for
    }
}

TEST_CASE("an update that leaves numbers that are not finite says so, also from several threads") {
  for (const MakeUpdater& make : makers)
    for (const DType dtype : {DType::float32, DType::bfloat16}) {
      const auto optimizer = make_optimizer({.name = "sgd"});
      Arena arena(*optimizer);
      optimizer->bind(arena.bindings());
      const std::size_t count = arena.values.size();
      std::vector<BFloat16> gradients(count), rounded(count);
      LayerArenas layers{.gradients = reinterpret_cast<const std::byte*>(arena.gradients.data()), .dtype = dtype};
      if (dtype == DType::bfloat16) {
        layers.gradients = reinterpret_cast<const std::byte*>(gradients.data());
        layers.values = reinterpret_cast<std::byte*>(rounded.data());
      }
      const auto context = make_cpu_context(3);
      CpuStream stream(3);
      const auto updater = make(*context, *optimizer, arena.bindings(), layers, count, {.schedule = halving()}, stream);
      StepControl total;
      total.weight = 1;
      for (const float bad : {0.0F, std::numeric_limits<float>::infinity(), 0.0F}) {
        std::ranges::fill(arena.gradients, bad);
        std::ranges::fill(gradients, as_number<BFloat16>(bad));
        for (float& value : arena.values) value = 1;
        updater->step(arena.whole(), &total, stream);
        CHECK(updater->outcome()->applied == 1);
        CHECK(updater->outcome()->spoiled == (bad == 0 ? 0 : 1));
      }
    }
}

TEST_CASE(
    "an average follows the values for 20 steps as PyTorch's AveragedModel does, and stays where nothing is applied") {
  for (const MakeUpdater& make : makers) {
    const auto optimizer = make_optimizer({.name = "nesterov"});
    Arena arena(*optimizer);
    optimizer->bind(arena.bindings());
    const auto context = make_cpu_context(3);
    CpuStream stream(3);
    std::vector<float> average(arena.values.size(), 7.0F);
    const LayerArenas layers{.gradients = reinterpret_cast<const std::byte*>(arena.gradients.data())};
    const auto updater = make(*context, *optimizer, arena.bindings(), layers, arena.values.size(),
                              {.schedule = halving(), .average = average.data(), .average_decay = 0.9}, stream);
    std::vector<double> expected(average.size());
    StepControl total;
    for (std::uint64_t t = 1; t <= 20; ++t) {
      arena.fill_gradients(t);
      for (const double weight : {12.0, 0.0}) {  // one without samples changes nothing
        total.weight = weight;
        updater->step(arena.whole(), &total, stream);
        updater->average(stream);
      }
      for (std::size_t i = 0; i < expected.size(); ++i)
        expected[i] = t == 1 ? arena.values[i] : 0.9 * expected[i] + 0.1 * arena.values[i];
    }
    for (std::size_t i = 0; i < expected.size(); ++i)
      REQUIRE(average[i] == Approx(expected[i]).epsilon(1e-6).margin(1e-6));
    const auto values = arena.values, kept = average;
    updater->swap_average(stream);
    CHECK(arena.values == kept);
    CHECK(average == values);
    updater->swap_average(stream);
    arena.gradients[0] = std::numeric_limits<float>::infinity();
    total.weight = 12;
    updater->step(arena.whole(), &total, stream);
    updater->average(stream);
    CHECK(updater->outcome()->spoiled == 1);
    CHECK(average == kept);
  }
}

TEST_CASE("a state that is not finite is told of, also where the value does not show it") {
  for (const MakeUpdater& make : makers)
    for (const char* name : {"adagrad", "rmsprop", "adam", "lion"}) {
      const auto optimizer = make_optimizer({.name = name});
      Arena arena(*optimizer);
      Update update(make, *optimizer, arena, {}, false);
      update.total.weight = 1;
      arena.fill_gradients(1);
      // The square of a large gradient is infinite, and a step that is divided by it 0; a NaN has no sign.
      arena.gradients[20] = std::string(name) == "lion" ? std::nanf("") : 1e30F;
      update.step();
      INFO(name);
      CHECK(update.outcome().spoiled == 1);
      CHECK(std::ranges::all_of(arena.values, [](float value) { return std::isfinite(value); }));
    }
}

TEST_CASE("zeros of a pruned parameter stay zero where that is told, for every optimizer; all else keeps its bits") {
  for (const MakeUpdater& make : makers)
    for (const OptimizerOptions& options : &make == makers ? every_rule(0.01) : every_optimizer(0.01))
      for (const bool keeps : {false, true}) {
        const auto optimizer = make_optimizer(options), updated = make_optimizer(options);
        if (keeps && optimizer->needs_norms()) continue;  // a weight that stays is in the norm of what is proposed
        Arena plain(*optimizer), kept(*updated);
        kept.groups[0].pruned = true;  // the first and the last, a matrix
        for (Arena* arena : {&plain, &kept})
          for (std::size_t i = 0; i < arena->values.size(); i += 3) arena->values[i] = 0;
        Update expected(make, *optimizer, plain, {}, false), update(make, *updated, kept, {}, false);
        update.updater->set_keeps_zeros(keeps, update.stream);
        const auto stays = [&](std::size_t i) {
          const auto in = [&](std::size_t segment) {
            const ArenaSegment& s = kept.segments[segment];
            return i >= s.offset && i < s.offset + static_cast<std::size_t>(s.desc.padded_count());
          };
          return keeps && i % 3 == 0 && (in(0) || in(3));
        };
        for (std::uint64_t t = 1; t <= 3; ++t) {
          plain.fill_gradients(t);
          kept.fill_gradients(t);
          for (Update* each : {&expected, &update}) {
            each->total.loss = 3;
            each->total.weight = 12;
            each->step();
          }
          INFO(text_of(options) << ", update " << t << (keeps ? ", kept" : ""));
          std::size_t wrong = 0;
          for (std::size_t i = 0; i < kept.values.size(); ++i)
            wrong += kept.values[i] == (stays(i) ? 0.0F : plain.values[i]) ? 0 : 1;
          CHECK(wrong == 0);
        }
        CHECK(kept.values[3] == (keeps ? 0.0F : plain.values[3]));
        CHECK(plain.values[3] != 0);
      }
}

TEST_CASE("a frozen parameter's gradient is neither checked nor clipped by") {
  for (const MakeUpdater& make : makers)
    for (const double clip : {0.0, 0.5}) {
      const auto optimizer = make_optimizer({.name = "sgd"});
      Arena arena(*optimizer);
      Update update(make, *optimizer, arena, {.norm = clip}, true);
      update.total.loss = 3;
      update.total.weight = 12;
      arena.fill_gradients(1);
      arena.gradients[arena.segments[2].offset] = std::nanf("");
      update.step();
      CHECK(update.outcome().applied == 1);
    }
}

namespace {

/// An update of half gradients: its masters, what layers read of them, and its loss scale.
template <class T>
struct HalfUpdate {
  HalfUpdate(const MakeUpdater& make, Optimizer& optimizer, Arena& masters, const Clipping& clip, LossScale* more_scale)
      : arena(masters),
        gradients(masters.values.size()),
        rounded(masters.values.size()),
        updater(make(*context, optimizer, masters.bindings(),
                     {.gradients = reinterpret_cast<const std::byte*>(gradients.data()),
                      .dtype = dtype_of<T>,
                      .values = reinterpret_cast<std::byte*>(rounded.data())},
                     gradients.size(),
                     {.schedule = halving(),
                      .loss_scale = 0.25,
                      .clip_norm = clip.norm,
                      .clip_value = clip.value,
                      .more_scale = more_scale},
                     stream)) {
    total.loss = 3;
    total.weight = 12;
  }
  void step() { updater->step(arena.whole(), &total, stream); }
  [[nodiscard]] const UpdateOutcome& outcome() const { return *updater->outcome(); }
  /// The arena's gradients, times `scale`, rounded; the arena has what they are then.
  void take_gradients(float scale) {
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      gradients[i] = as_number<T>(arena.gradients[i] * scale);
      arena.gradients[i] = as_float(gradients[i]);
    }
  }
  [[nodiscard]] bool reads_what_is_kept() const {
    for (std::size_t i = 0; i < rounded.size(); ++i)
      if (!(rounded[i] == as_number<T>(arena.values[i]))) return false;
    return true;
  }

  Arena& arena;
  std::vector<T> gradients, rounded;
  CpuStream stream{2};
  std::unique_ptr<DeviceContext> context = make_cpu_context(2);
  StepControl total;
  std::unique_ptr<Updater> updater;
};

}  // namespace

TEMPLATE_TEST_CASE("half gradients update float32 values to the processor's bits, and layers read them rounded", "",
                   Float16, BFloat16) {
  for (const MakeUpdater& make : makers)
    for (const OptimizerOptions& options : every_rule(0.01))
      for (const Clipping& clip : clippings) {
        const auto optimizer = make_optimizer(options), updated = make_optimizer(options);
        Arena ours(*optimizer), device(*optimizer);
        optimizer->bind(ours.bindings());
        updated->bind(device.bindings());
        LossScale scale{.scale = 512, .good_steps = 0};
        const bool follows = std::is_same_v<TestType, Float16>;
        HalfUpdate<TestType> update(make, *updated, device, clip, follows ? &scale : nullptr);
        update.updater->round_values(update.stream);
        CHECK(update.reads_what_is_kept());
        const float more = follows ? 512 : 1;
        CpuStream stream;
        for (std::uint64_t t = 1; t <= 5; ++t) {
          device.fill_gradients(t);
          update.take_gradients(more);
          ours.gradients = device.gradients;
          update.step();
          double factor = 1 / (12 * 0.25 * more);
          if (clip.norm > 0) factor *= clip_factor(update.outcome().gradient_norm, clip.norm);
          if (clip.norm > 0)
            REQUIRE(update.outcome().gradient_norm ==
                    Approx(std::sqrt(optimizer->squared_norm(ours.whole(), stream)) / (3 * more)).epsilon(1e-12));
          clip_sums(ours.gradients, clip, factor);
          const StepScalars scalars{halving().rate(t - 1), factor, t};
          if (optimizer->needs_norms()) optimizer->measure(ours.gradients.data(), scalars, stream);
          optimizer->step(ours.whole(), scalars, stream);
          INFO(text_of(options) << ", clipped by norm " << clip.norm << " or value " << clip.value << ", update " << t);
          REQUIRE(update.outcome().applied == 1);
          REQUIRE(update.outcome().overflowed == 0);
          REQUIRE(update.outcome().loss_scale == more);
          REQUIRE(device.values == ours.values);
          REQUIRE(device.states == ours.states);
          REQUIRE(update.reads_what_is_kept());
        }
        CHECK(scale.good_steps == (follows ? 5 : 0));
      }
}

TEST_CASE("a gradient beyond float16 halves the loss scale and changes nothing else; 2000 good steps double it") {
  const auto optimizer = make_optimizer({.name = "adam"});
  Arena arena(*optimizer);
  optimizer->bind(arena.bindings());
  LossScale scale;
  HalfUpdate<Float16> update(make_host_updater, *optimizer, arena, {}, &scale);
  update.updater->round_values(update.stream);
  const auto values = arena.values;
  const auto step = [&](float multiplier) {
    arena.fill_gradients(1);
    update.take_gradients(multiplier);
    update.step();
  };
  step(1e6F);
  CHECK(update.outcome().overflowed == 1);
  CHECK(update.outcome().applied == 0);
  CHECK(update.outcome().finite == 1);
  CHECK(update.outcome().updates == 0);
  CHECK(update.outcome().loss_scale == 0x1p15F);
  CHECK(scale.scale == 0x1p15F);
  CHECK(arena.values == values);
  CHECK(update.reads_what_is_kept());
  scale.good_steps = LossScale::interval - 2;
  step(1);
  CHECK(scale.scale == 0x1p15F);
  update.total.weight = 0;  // nothing learnt: not counted
  step(1);
  CHECK(scale.good_steps == LossScale::interval - 1);
  update.total.weight = 12;
  step(1);
  CHECK(scale.scale == 0x1p16F);
  CHECK(scale.good_steps == 0);
  CHECK(update.outcome().updates == 2);
  scale = {0x1p127F, LossScale::interval - 1};
  step(0);  // there is no float above
  CHECK(scale.scale == 0x1p127F);
  scale = {2 * LossScale::smallest, 5};
  step(1e6F);
  CHECK(scale.scale == LossScale::smallest);
  CHECK(update.outcome().overflowed == 1);
  step(1e6F);  // no scale is to blame
  CHECK(update.outcome().overflowed == 0);
  CHECK(update.outcome().finite == 0);
  CHECK(scale.scale == LossScale::smallest);
  update.total.loss = std::nan("");
  scale = {};
  step(1e6F);
  CHECK(update.outcome().finite == 0);
  CHECK(update.outcome().overflowed == 0);
  CHECK(scale.scale == 0x1p16F);
}

TEST_CASE("parameters that do not fit a device's arena are refused") {
  const auto optimizer = make_optimizer({.name = "sgd"});
  Arena arena(*optimizer);
  const auto refused = [&](std::size_t offset, std::size_t group) {
    OptimizerBindings bindings = arena.bindings();
    bindings.segments = {{"a", {Shape{4}, DType::float32, {}}, offset, group}};
    CHECK_THROWS_AS(parameters_of_lines(bindings, arena.values.size()), LogicError);
  };
  refused(8, 0);                    // not aligned
  refused(arena.values.size(), 0);  // behind the end
  refused(0, 7);                    // no such group
}
