#include <cmath>
#include <limits>

#include <ronda/core/error.hpp>
#include <ronda/optim/schedule.hpp>

#include "support/catch.hpp"
#include "support/message.hpp"

using namespace ronda;
using namespace ronda::test;

TEST_CASE("a constant rate stays") {
  const Schedule schedule({.learning_rate = 0.2, .total_steps = 10});
  for (const std::uint64_t step : {0, 5, 9, 100}) REQUIRE(schedule.rate(step) == 0.2);
}

TEST_CASE("a warm-up grows in a straight line to the peak") {
  const Schedule schedule({.learning_rate = 0.4, .total_steps = 100, .warmup_steps = 4});
  REQUIRE(schedule.rate(0) == Approx(0.1));
  REQUIRE(schedule.rate(1) == Approx(0.2));
  REQUIRE(schedule.rate(3) == Approx(0.4));
  REQUIRE(schedule.rate(4) == Approx(0.4));
}

TEST_CASE("a step schedule falls at each third, or when told") {
  const Schedule thirds({.name = "step", .learning_rate = 1, .total_steps = 10});
  REQUIRE(thirds.rate(3) == Approx(1));
  REQUIRE(thirds.rate(4) == Approx(0.1));
  REQUIRE(thirds.rate(8) == Approx(0.01));
  REQUIRE(thirds.rate(9) == Approx(0.01));
  const Schedule told({.name = "step", .learning_rate = 1, .total_steps = 10, .step_factor = 0.5, .step_every = 2});
  REQUIRE(told.rate(1) == Approx(1));
  REQUIRE(told.rate(7) == Approx(0.125));
}

TEST_CASE("a cosine goes from the peak to nothing, after the warm-up") {
  const Schedule schedule({.name = "cosine", .learning_rate = 2, .total_steps = 12, .warmup_steps = 4});
  REQUIRE(schedule.rate(3) == Approx(2));
  REQUIRE(schedule.rate(4) == Approx(2));
  REQUIRE(schedule.rate(6) == Approx(1 + std::sqrt(0.5)));
  REQUIRE(schedule.rate(8) == Approx(1));
  REQUIRE(schedule.rate(10) == Approx(1 - std::sqrt(0.5)));
  REQUIRE(schedule.rate(12) == Approx(0).margin(1e-12));
  REQUIRE(schedule.rate(1000) == schedule.rate(12));
}

TEST_CASE("a polynomial of power 1 is a straight line") {
  REQUIRE(Schedule({.name = "polynomial", .learning_rate = 1, .total_steps = 8}).rate(2) == Approx(0.75));
  REQUIRE(Schedule({.name = "polynomial", .learning_rate = 1, .total_steps = 8, .power = 2}).rate(4) == Approx(0.25));
}

TEST_CASE("an exponential schedule is PyTorch's ExponentialLR: a factor after each epoch, however long the training") {
  for (const std::uint64_t total : {20, 1000}) {
    const Schedule schedule(
        {.name = "exponential", .learning_rate = 0.4, .total_steps = total, .steps_per_epoch = 7, .gamma = 0.9});
    double rate = 0.4;
    for (std::uint64_t step = 0; step < 20; ++step) {
      if (step > 0 && step % 7 == 0) rate *= 0.9;
      REQUIRE(schedule.rate(step) == Approx(rate).epsilon(1e-12));
    }
  }
  for (const double bad : {0.0, -1.0, std::nan("")})
    require_mentions(message_of<InputError>([&] { Schedule({.name = "exponential", .gamma = bad}); }), {".gamma"});
}

TEST_CASE("cosines with restarts are PyTorch's CosineAnnealingWarmRestarts, asked in parts of epochs") {
  constexpr std::uint64_t epoch = 7;
  for (const std::uint64_t t_mult : {1, 2, 3})
    for (const double t_0 : {1.0, 3.0}) {
      const Schedule schedule({.name = "cosine_restarts",
                               .learning_rate = 0.4,
                               .total_steps = 30 * epoch,
                               .steps_per_epoch = epoch,
                               .restart_epochs = t_0,
                               .restart_factor = t_mult});
      for (std::uint64_t step = 0; step < 30 * epoch; ++step) {
        const double now = static_cast<double>(step) / epoch;
        double t_i = t_0, t_cur = std::fmod(now, t_0);
        if (t_mult > 1) {  // a small part of a step keeps a logarithm of a whole number from falling below it
          const auto base = static_cast<double>(t_mult);
          const double n = std::floor(std::log(now / t_0 * (base - 1) + 1) / std::log(base) + 1e-9);
          t_cur = now - t_0 * (std::pow(base, n) - 1) / (base - 1);
          t_i = t_0 * std::pow(base, n);
        }
        const double rate = 0.4 * (1 + std::cos(std::acos(-1) * t_cur / t_i)) / 2;
        INFO("T_0 " << t_0 << ", T_mult " << t_mult << ", step " << step);
        REQUIRE(schedule.rate(step) == Approx(rate).epsilon(1e-9).margin(1e-12));
      }
    }
  const auto refused = [](double epochs, std::uint64_t factor) {
    return message_of<InputError>(
        [&] { Schedule({.name = "cosine_restarts", .restart_epochs = epochs, .restart_factor = factor}); });
  };
  for (const double bad : {0.0, -1.0, std::nan("")}) require_mentions(refused(bad, 1), {".restart_epochs"});
  require_mentions(refused(1, 0), {".restart_factor"});
}

TEST_CASE("a cosine with restarts has a whole number of steps, whatever its epochs times their steps are rounded to") {
  struct Case {
    double epochs;
    std::uint64_t steps_per_epoch, factor, length;
  };
  for (const auto& [epochs, steps_per_epoch, factor, length] : {Case{0.07, 100, 1, 7},
                                                                {0.55, 100, 1, 55},
                                                                {0.55, 100, 2, 55},
                                                                {1.1, 10, 3, 11},
                                                                {0.29, 100, 1, 29},
                                                                {0.55, 10, 2, 6}}) {
    const Schedule schedule({.name = "cosine_restarts",
                             .learning_rate = 1,
                             .total_steps = 1000,
                             .steps_per_epoch = steps_per_epoch,
                             .restart_epochs = epochs,
                             .restart_factor = factor});
    for (std::uint64_t begin = 0, steps = length; begin + steps <= 1000; begin += steps, steps *= factor) {
      INFO(epochs << " epochs of " << steps_per_epoch << " steps, factor " << factor << ", restart at step " << begin);
      CHECK(schedule.rate(begin) == 1);
      CHECK(schedule.rate(begin + steps - 1) < 0.1);
    }
  }
}

TEST_CASE("one cycle is PyTorch's OneCycleLR") {
  const auto anneal = [](double from, double to, double pct) {
    return to + (from - to) / 2 * (1 + std::cos(std::acos(-1) * pct));
  };
  for (const std::uint64_t total : {10, 77})
    for (const double pct_start : {0.0, 0.25, 0.3, 0.5, 1.0}) {
      const Schedule schedule(
          {.name = "one_cycle", .learning_rate = 0.4, .total_steps = total, .pct_start = pct_start, .div_factor = 20});
      const double first = 0.4 / 20, least = first / 1e4, top = pct_start * static_cast<double>(total) - 1;
      for (std::uint64_t step = 0; step < total; ++step) {
        const auto now = static_cast<double>(step), last = static_cast<double>(total) - 1;
        const double rate = now <= top ? anneal(first, 0.4, now / top) : anneal(0.4, least, (now - top) / (last - top));
        INFO(total << " steps, pct_start " << pct_start << ", step " << step);
        REQUIRE(schedule.rate(step) == Approx(rate).epsilon(1e-12));
      }
      REQUIRE(schedule.rate(total) == schedule.rate(total - 1));
    }
  for (const std::uint64_t total : {0, 1, 2, 3})
    for (const double pct_start : {0.0, 0.3, 0.5, 1.0}) {
      const Schedule schedule({.name = "one_cycle", .learning_rate = 1, .total_steps = total, .pct_start = pct_start});
      for (std::uint64_t step = 0; step < 4; ++step) REQUIRE(std::isfinite(schedule.rate(step)));
    }
  const auto refused = [](ScheduleOptions options) {
    options.name = "one_cycle";
    return message_of<InputError>([&] { const Schedule schedule(options); });
  };
  require_mentions(refused({.warmup_steps = 3}), {".warmup_epochs"});
  require_mentions(refused({.pct_start = 1.5}), {".pct_start"});
  require_mentions(refused({.div_factor = 0}), {".div_factor"});
  require_mentions(refused({.final_div_factor = std::nan("")}), {".final_div_factor"});
}

TEST_CASE("the rate is scaled with the global batch, relative to 128") {
  const auto peak = [](const char* scaling, std::uint64_t batch) {
    return Schedule({.learning_rate = 0.1, .scaling = scaling, .global_batch = batch}).peak();
  };
  REQUIRE(peak("none", 512) == 0.1);
  REQUIRE(peak("linear", 512) == Approx(0.4));
  REQUIRE(peak("linear", 64) == Approx(0.05));
  REQUIRE(peak("sqrt", 512) == Approx(0.2));
  REQUIRE(peak("linear", 128) == 0.1);
}

TEST_CASE("a warm-up longer than the training leaves nothing to decay") {
  const Schedule schedule({.name = "cosine", .learning_rate = 1, .total_steps = 4, .warmup_steps = 8});
  REQUIRE(schedule.rate(3) == Approx(0.5));
  REQUIRE(std::isfinite(schedule.rate(20)));
}

TEST_CASE("a table has all rates until they change no more") {
  for (const ScheduleRow& row : schedule_rows())
    for (const std::uint64_t warmup : {0, 3, 20}) {
      if (row.name == "one_cycle" && warmup > 0) continue;  // it has its own
      const Schedule schedule({.name = std::string(row.name),
                               .learning_rate = 1,
                               .total_steps = 12,
                               .warmup_steps = warmup,
                               .steps_per_epoch = 5,
                               .gamma = 0.5,
                               .restart_epochs = 0.7});
      const auto table = schedule.rates();
      INFO(row.name << ", " << warmup << " steps of warm-up");
      for (std::uint64_t step = 0; step < 40; ++step)
        REQUIRE(table[std::min<std::size_t>(step, table.size() - 1)] == schedule.rate(step));
    }
  const std::uint64_t endless = std::numeric_limits<std::uint64_t>::max();
  REQUIRE(Schedule({.total_steps = endless}).rates().size() == 1);
  REQUIRE(Schedule({.total_steps = endless, .warmup_steps = 5}).rates().size() == 6);
}

TEST_CASE("a table that is too long is refused") {
  const std::uint64_t endless = std::numeric_limits<std::uint64_t>::max(), most = std::uint64_t{1} << 24;
  for (const std::uint64_t warmup : {std::uint64_t{1}, most - 1, most, endless})
    REQUIRE_THROWS_AS(Schedule({.name = "cosine", .total_steps = endless, .warmup_steps = warmup}).rates(), InputError);
  REQUIRE_THROWS_AS(Schedule({.total_steps = 10, .warmup_steps = endless}).rates(), InputError);
  REQUIRE_THROWS_AS(Schedule({.name = "step", .total_steps = most}).rates(), InputError);
  REQUIRE(Schedule({.name = "step", .total_steps = most - 1}).rates().size() == most);
}

TEST_CASE("what cannot work is refused") {
  require_mentions(message_of<InputError>([] { Schedule({.name = "exp"}); }), {"constant, step, cosine, polynomial"});
  require_mentions(message_of<InputError>([] { Schedule({.scaling = "log"}); }), {"none, linear or sqrt"});
  for (const double bad : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    REQUIRE_THROWS_AS(Schedule({.learning_rate = bad}), InputError);
    REQUIRE_THROWS_AS(Schedule({.step_factor = bad}), InputError);
    REQUIRE_THROWS_AS(Schedule({.power = bad}), InputError);
  }
  REQUIRE_THROWS_AS(Schedule({.base_batch = 0}), InputError);
}
