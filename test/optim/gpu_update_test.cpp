// The update on a GPU against the processor's. Needs a GPU.
#include <vector>

#include <ronda/core/number.hpp>
#include <ronda/optim/make_optimizer.hpp>
#include <ronda/optim/updater.hpp>

#include "optim/arena.hpp"
#include "support/catch.hpp"

using namespace ronda;
using namespace ronda::test;

namespace {

Schedule constant_rate() { return Schedule({.learning_rate = 0.1}); }

}  // namespace

TEST_CASE("an update on a GPU follows the processor's, for every rule") {
  const auto gpu = make_cuda_context(0);
  const auto stream = gpu->make_stream(StreamPriority::usual);
  CpuStream cpu;
  for (const OptimizerOptions& options : every_rule(0.01))
    for (const Clipping& clip : clippings) {
      const auto optimizer = make_optimizer(options);
      Arena arena(*optimizer);
      optimizer->bind(arena.bindings());
      const std::size_t count = arena.values.size(), bytes = count * sizeof(float);
      const Buffer values = gpu->allocate(bytes), gradients = gpu->allocate(bytes),
                   states = gpu->allocate(arena.bindings().states.size() * bytes),
                   control = gpu->allocate(sizeof(StepControl));
      const auto at = [](const Buffer& buffer) { return reinterpret_cast<float*>(buffer.data()); };
      OptimizerBindings bindings = arena.bindings();
      bindings.values = at(values);
      for (std::size_t i = 0; i < bindings.states.size(); ++i) bindings.states[i] = at(states) + i * count;
      gpu->copy(arena.values.data(), values.data(), bytes, *stream);
      StepControl total;
      total.loss = 3;
      total.weight = 12;
      gpu->copy(&total, control.data(), sizeof total, *stream);
      const auto update = make_cuda_updater(
          *gpu, *optimizer, bindings, {.gradients = gradients.data()}, count,
          {.schedule = constant_rate(), .loss_scale = 0.25F, .clip_norm = clip.norm, .clip_value = clip.value},
          *stream);
      for (std::uint64_t t = 1; t <= 5; ++t) {
        arena.fill_gradients(t);
        gpu->copy(arena.gradients.data(), gradients.data(), bytes, *stream);
        update->step({bindings.values, nullptr, count}, reinterpret_cast<const StepControl*>(control.data()), *stream);
        UpdateOutcome outcome{};
        gpu->copy(update->outcome(), &outcome, sizeof outcome, *stream);
        std::vector<float> found(count);
        gpu->copy(values.data(), found.data(), bytes, *stream);
        stream->synchronize();
        REQUIRE(outcome.applied == 1);
        REQUIRE(outcome.updates == t);
        const double factor = clip.norm > 0 ? clip_factor(outcome.gradient_norm, clip.norm) / 3 : 1 / (12 * 0.25);
        clip_sums(arena.gradients, clip, factor);
        const StepScalars scalars{0.1, factor, t};
        if (optimizer->needs_norms()) optimizer->measure(arena.gradients.data(), scalars, cpu);
        optimizer->step(arena.whole(), scalars, cpu);
        INFO(text_of(options) << ", clipped by norm " << clip.norm << " or value " << clip.value << ", update " << t);
        for (std::size_t i = 0; i < count; ++i)  // a GPU's pow may round a bias correction's last bit otherwise
          REQUIRE(found[i] == Approx(arena.values[i]).epsilon(1e-6).margin(1e-7));
      }
    }
}

TEMPLATE_TEST_CASE("half gradients update float32 values on a GPU; one beyond float16 halves the scale instead", "",
                   Float16, BFloat16) {
  const auto gpu = make_cuda_context(0);
  const auto stream = gpu->make_stream(StreamPriority::usual);
  CpuStream cpu;
  const bool follows = std::is_same_v<TestType, Float16>;
  for (const OptimizerOptions& options : every_rule(0.01)) {
    const auto optimizer = make_optimizer(options);
    Arena arena(*optimizer);
    optimizer->bind(arena.bindings());
    const std::size_t count = arena.values.size(), bytes = count * sizeof(float);
    const Buffer values = gpu->allocate(bytes), states = gpu->allocate(arena.bindings().states.size() * bytes),
                 gradients = gpu->allocate(count * sizeof(TestType)), read = gpu->allocate(count * sizeof(TestType)),
                 control = gpu->allocate(sizeof(StepControl)), scale = gpu->allocate(sizeof(LossScale));
    OptimizerBindings bindings = arena.bindings();
    bindings.values = reinterpret_cast<float*>(values.data());
    for (std::size_t i = 0; i < bindings.states.size(); ++i)
      bindings.states[i] = reinterpret_cast<float*>(states.data()) + i * count;
    gpu->copy(arena.values.data(), values.data(), bytes, *stream);
    StepControl total;
    total.loss = 3;
    total.weight = 12;
    gpu->copy(&total, control.data(), sizeof total, *stream);
    const LossScale first{.scale = 512, .good_steps = 0};
    gpu->copy(&first, scale.data(), sizeof first, *stream);
    const auto update =
        make_cuda_updater(*gpu, *optimizer, bindings,
                          {.gradients = gradients.data(), .dtype = dtype_of<TestType>, .values = read.data()}, count,
                          {.schedule = constant_rate(),
                           .loss_scale = 0.25F,
                           .more_scale = follows ? reinterpret_cast<LossScale*>(scale.data()) : nullptr},
                          *stream);
    update->round_values(*stream);
    double more = follows ? 512 : 1;
    for (std::uint64_t t = 1; t <= 5; ++t) {
      arena.fill_gradients(t);
      const bool too_large = follows && t == 3;
      std::vector<TestType> given(count);
      for (std::size_t i = 0; i < count; ++i) {
        given[i] = as_number<TestType>(arena.gradients[i] * static_cast<float>(more) * (too_large ? 1e6F : 1.0F));
        arena.gradients[i] = as_float(given[i]);
      }
      gpu->copy(given.data(), gradients.data(), count * sizeof(TestType), *stream);
      update->step({bindings.values, nullptr, count}, reinterpret_cast<const StepControl*>(control.data()), *stream);
      UpdateOutcome outcome{};
      std::vector<float> found(count);
      std::vector<TestType> rounded(count);
      gpu->copy(update->outcome(), &outcome, sizeof outcome, *stream);
      gpu->copy(values.data(), found.data(), bytes, *stream);
      gpu->copy(read.data(), rounded.data(), count * sizeof(TestType), *stream);
      stream->synchronize();
      INFO(text_of(options) << ", update " << t);
      REQUIRE(outcome.overflowed == (too_large ? 1 : 0));
      if (too_large)
        more /= 2;
      else {
        const StepScalars scalars{0.1, 1 / (12 * 0.25 * more), outcome.updates};
        if (optimizer->needs_norms()) optimizer->measure(arena.gradients.data(), scalars, cpu);
        optimizer->step(arena.whole(), scalars, cpu);
      }
      REQUIRE(outcome.loss_scale == more);
      for (std::size_t i = 0; i < count; ++i) {
        REQUIRE(found[i] == Approx(arena.values[i]).epsilon(1e-6).margin(1e-7));  // as for float32
        REQUIRE(rounded[i] == as_number<TestType>(found[i]));
      }
    }
  }
}
