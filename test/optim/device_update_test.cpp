// The update as a GPU does it, run on the host: the same bits as the processor's own.
#include <cmath>
#include <limits>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/core/number.hpp>
#include <ronda/core/random.hpp>
#include <ronda/optim/device_groups.hpp>
#include <ronda/optim/make_optimizer.hpp>

#include "optim/arena.hpp"
#include "support/catch.hpp"
#include "support/host_update.hpp"

using namespace ronda;
using namespace ronda::test;

namespace {

/// With an arena, its sums and its outcome.
struct Update {
  Update(const Optimizer& optimizer, Arena& arena, const std::vector<double>& rates, double clip_norm, bool check)
      : host(optimizer, arena.bindings(), {.gradients = reinterpret_cast<const std::byte*>(arena.gradients.data())},
             arena.values.size(),
             {.loss_scale = 0.25, .clip_norm = clip_norm, .check_gradients = check, .rates = rates}, outcome) {}
  void step() { host.step(total); }

  StepControl total;
  DeviceOutcome outcome{};
  HostUpdate host;
};

}  // namespace

TEST_CASE("a device's update gives the processor's bits, for every rule, groups and clipping included") {
  for (const char* name : {"sgd", "momentum", "nesterov", "adam", "adamw"})
    for (const double clip : {0.0, 0.5}) {
      const auto optimizer = make_optimizer({.name = name, .weight_decay = 0.01});
      Arena ours(*optimizer), device(*optimizer);
      optimizer->bind(ours.bindings());
      const std::vector<double> rates{0.1, 0.05, 0.025};
      Update update(*optimizer, device, rates, clip, false);
      CpuStream stream;
      for (std::uint64_t t = 1; t <= 5; ++t) {
        ours.fill_gradients(t);
        device.fill_gradients(t);
        update.total.loss = 3;
        update.total.weight = 12;
        update.step();
        const double rate = rates[std::min<std::size_t>(t, rates.size()) - 1];
        double factor = 1 / (12 * 0.25);
        if (clip > 0) {
          const double norm = std::sqrt(optimizer->squared_norm(ours.whole(), stream)) * factor;
          REQUIRE(update.outcome.gradient_norm == Approx(norm).epsilon(1e-12));  // another order of float64 sums
          factor *= clip_factor(update.outcome.gradient_norm, clip);
        }
        optimizer->step(ours.whole(), {rate, factor, t}, stream);
        INFO(name << ", clip " << clip << ", update " << t);
        REQUIRE(update.outcome.applied == 1);
        REQUIRE(update.outcome.updates == t);
        REQUIRE(update.outcome.learning_rate == rate);
        REQUIRE(device.values == ours.values);
        REQUIRE(device.states == ours.states);
      }
    }
}

TEST_CASE("a device's update leaves everything as it is where there is nothing to learn from") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const auto optimizer = make_optimizer({.name = "adam"});
  Arena arena(*optimizer);
  Update update(*optimizer, arena, {0.1}, 0, true);
  const auto values = arena.values;
  struct Case {
    double loss, weight;
    float gradient;
    bool finite;
  };
  for (const Case& c : {Case{1, 0, 1, true}, Case{infinity, 2, 1, false}, Case{std::nan(""), 2, 1, false},
                        Case{1, 2, std::nanf(""), false}, Case{1, 2, std::numeric_limits<float>::infinity(), false}}) {
    arena.fill_gradients(1);
    arena.gradients[20] = c.gradient;
    update.total.loss = c.loss;
    update.total.weight = c.weight;
    update.step();
    CHECK(update.outcome.applied == 0);
    CHECK(update.outcome.finite == (c.finite ? 1 : 0));
    CHECK(update.outcome.updates == 0);
    CHECK(update.outcome.gradient_norm == 0);  // as the processor says
    CHECK(arena.values == values);
  }
  arena.fill_gradients(1);
  arena.gradients[20] = std::numeric_limits<float>::max();  // large, not infinite; its square is beyond a float
  update.total.loss = 1;
  update.step();
  CHECK(update.outcome.applied == 1);
  CHECK(update.outcome.gradient_norm == 0);  // checked, and not asked for
}

namespace {

/// An update of half gradients: its masters, what layers read of them, and its loss scale.
template <class T>
struct HalfUpdate {
  HalfUpdate(const Optimizer& optimizer, Arena& masters, double clip, LossScale* more_scale)
      : arena(masters),
        gradients(masters.values.size()),
        rounded(masters.values.size()),
        host(optimizer, masters.bindings(),
             {.gradients = reinterpret_cast<const std::byte*>(gradients.data()),
              .dtype = dtype_of<T>,
              .values = reinterpret_cast<std::byte*>(rounded.data())},
             gradients.size(), {.loss_scale = 0.25, .clip_norm = clip, .rates = rates, .more_scale = more_scale},
             outcome) {
    total.loss = 3;
    total.weight = 12;
  }
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

  const std::vector<double> rates{0.1, 0.05};
  Arena& arena;
  std::vector<T> gradients, rounded;
  StepControl total;
  DeviceOutcome outcome{};
  HostUpdate host;
};

}  // namespace

TEMPLATE_TEST_CASE("half gradients update float32 values to the processor's bits, and layers read them rounded", "",
                   Float16, BFloat16) {
  for (const char* name : {"sgd", "momentum", "nesterov", "adam", "adamw"})
    for (const double clip : {0.0, 0.5}) {
      const auto optimizer = make_optimizer({.name = name, .weight_decay = 0.01});
      Arena ours(*optimizer), device(*optimizer);
      optimizer->bind(ours.bindings());
      LossScale scale{.scale = 512, .good_steps = 0};
      const bool follows = std::is_same_v<TestType, Float16>;
      HalfUpdate<TestType> update(*optimizer, device, clip, follows ? &scale : nullptr);
      update.host.round_values();
      CHECK(update.reads_what_is_kept());
      const float more = follows ? 512 : 1;
      CpuStream stream;
      for (std::uint64_t t = 1; t <= 5; ++t) {
        device.fill_gradients(t);
        update.take_gradients(more);
        ours.gradients = device.gradients;
        update.host.step(update.total);
        double factor = 1 / (12 * 0.25 * more);
        if (clip > 0) factor *= clip_factor(update.outcome.gradient_norm, clip);
        if (clip > 0)
          REQUIRE(update.outcome.gradient_norm ==
                  Approx(std::sqrt(optimizer->squared_norm(ours.whole(), stream)) / (3 * more)).epsilon(1e-12));
        optimizer->step(ours.whole(), {t == 1 ? 0.1 : 0.05, factor, t}, stream);
        INFO(name << ", clip " << clip << ", update " << t);
        REQUIRE(update.outcome.applied == 1);
        REQUIRE(update.outcome.overflowed == 0);
        REQUIRE(update.outcome.loss_scale == more);
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
  LossScale scale;
  HalfUpdate<Float16> update(*optimizer, arena, 0, &scale);
  update.host.round_values();
  const auto values = arena.values;
  const auto step = [&](float multiplier) {
    arena.fill_gradients(1);
    update.take_gradients(multiplier);
    update.host.step(update.total);
  };
  step(1e6F);
  CHECK(update.outcome.overflowed == 1);
  CHECK(update.outcome.applied == 0);
  CHECK(update.outcome.finite == 1);
  CHECK(update.outcome.updates == 0);
  CHECK(update.outcome.loss_scale == 0x1p15F);
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
  CHECK(update.outcome.updates == 2);
  scale = {0x1p127F, LossScale::interval - 1};
  step(0);  // there is no float above
  CHECK(scale.scale == 0x1p127F);
  scale = {2 * LossScale::smallest, 5};
  step(1e6F);
  CHECK(scale.scale == LossScale::smallest);
  CHECK(update.outcome.overflowed == 1);
  step(1e6F);  // no scale is to blame
  CHECK(update.outcome.overflowed == 0);
  CHECK(update.outcome.finite == 0);
  CHECK(scale.scale == LossScale::smallest);
  update.total.loss = std::nan("");
  scale = {};
  step(1e6F);
  CHECK(update.outcome.finite == 0);
  CHECK(update.outcome.overflowed == 0);
  CHECK(scale.scale == 0x1p16F);
}

TEST_CASE("parameters that do not fit a device's arena are refused") {
  const auto optimizer = make_optimizer({.name = "sgd"});
  Arena arena(*optimizer);
  const auto refused = [&](std::size_t offset, std::size_t group) {
    OptimizerBindings bindings = arena.bindings();
    bindings.segments = {{"a", {Shape{4}, DType::float32, {}}, offset, group}};
    CHECK_THROWS_AS(DeviceGroups::of(*optimizer, bindings, arena.values.size()), LogicError);
  };
  refused(8, 0);                    // not aligned
  refused(arena.values.size(), 0);  // behind the end
  refused(0, 7);                    // no such group
}
