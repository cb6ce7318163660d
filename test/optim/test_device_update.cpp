// The update as a GPU does it, run on the host: the same bits as the processor's own.
#include <cmath>
#include <limits>
#include <vector>

#include <ronda/optim/device_groups.hpp>
#include <ronda/optim/make_optimizer.hpp>
#include <ronda/runtime/core/error.hpp>
#include <ronda/runtime/core/random.hpp>

#include "optim/arena.hpp"
#include "support/catch.hpp"

using namespace ronda;
using namespace ronda::test;

namespace {

/// What CudaUpdate launches, call by call.
class HostUpdate {
 public:
  HostUpdate(const Optimizer& optimizer, Arena& arena, std::vector<double> rates, double clip_norm, bool check)
      : arena_(arena),
        groups_(DeviceGroups::of(optimizer, arena.bindings(), arena.values.size())),
        rates_(std::move(rates)),
        scalars_(groups_.groups.size()),
        sums_(device_update::partial_sums + device_update::sums_of_partials + 1),
        norm_asked_(clip_norm > 0 || check),
        decide_{.hyperparameters = optimizer.hyperparameters(),
                .groups = groups_.groups.data(),
                .group_count = static_cast<std::int64_t>(groups_.groups.size()),
                .rates = rates_.data(),
                .rate_count = static_cast<std::int64_t>(rates_.size()),
                .loss_scale = 0.25,
                .clip_norm = clip_norm,
                .squared_norm = norm_asked_ ? &sums_.back() : nullptr,
                .check_gradients = check,
                .total = &total,
                .outcome = &outcome,
                .scalars = scalars_.data()} {}

  void step() {
    using namespace device_update;
    const auto count = static_cast<std::int64_t>(arena_.values.size());
    const std::uint16_t* lines = groups_.group_of_line.data();
    if (norm_asked_) {
      double* const sums = sums_.data();
      const SumSquares squares{arena_.gradients.data(), lines, count, sums};
      for (std::int64_t i = 0; i < partial_sums; ++i) squares(i);
      const SumPartials some{sums, partial_sums, sums_of_partials, sums + partial_sums};
      for (std::int64_t i = 0; i < sums_of_partials; ++i) some(i);
      SumPartials{sums + partial_sums, sums_of_partials, 1, sums + partial_sums + sums_of_partials}(0);
    }
    decide_(0);
    const auto state = [&](std::size_t i) { return i < arena_.states.size() ? arena_.states[i].data() : nullptr; };
    const Update update{decide_.hyperparameters.kind, &outcome, scalars_.data(), lines, arena_.values.data(),
                        arena_.gradients.data(),      state(0), state(1)};
    for (std::int64_t i = count; i-- > 0;) update(i);
  }

  StepControl total;
  DeviceOutcome outcome{};

 private:
  Arena& arena_;
  DeviceGroups groups_;
  std::vector<double> rates_;
  std::vector<rules::Scalars> scalars_;
  std::vector<double> sums_;
  bool norm_asked_;
  device_update::Decide decide_;
};

}  // namespace

TEST_CASE("a device's update gives the processor's bits, for every rule, groups and clipping included") {
  for (const char* name : {"sgd", "momentum", "nesterov", "adam", "adamw"})
    for (const double clip : {0.0, 0.5}) {
      const auto optimizer = make_optimizer({.name = name, .weight_decay = 0.01});
      Arena ours(*optimizer), device(*optimizer);
      optimizer->bind(ours.bindings());
      const std::vector<double> rates{0.1, 0.05, 0.025};
      HostUpdate update(*optimizer, device, rates, clip, false);
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
  HostUpdate update(*optimizer, arena, {0.1}, 0, true);
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
    CHECK(arena.values == values);
  }
  arena.fill_gradients(1);
  arena.gradients[20] = std::numeric_limits<float>::max();  // large, not infinite; its square is beyond a float
  update.total.loss = 1;
  update.step();
  CHECK(update.outcome.applied == 1);
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
