// The update on a GPU against the processor's. Needs a GPU.
#include <vector>

#include <ronda/optim/device_update.hpp>
#include <ronda/optim/make_optimizer.hpp>

#include "optim/arena.hpp"
#include "support/catch.hpp"

using namespace ronda;
using namespace ronda::test;

TEST_CASE("an update on a GPU follows the processor's, for every rule") {
  const auto gpu = make_cuda_context(0);
  const auto stream = gpu->make_stream(StreamPriority::usual);
  CpuStream cpu;
  for (const char* name : {"sgd", "momentum", "nesterov", "adam", "adamw"})
    for (const double clip : {0.0, 0.5}) {
      const auto optimizer = make_optimizer({.name = name, .weight_decay = 0.01});
      Arena arena(*optimizer);
      optimizer->bind(arena.bindings());
      const std::size_t count = arena.values.size(), bytes = count * sizeof(float);
      const Buffer values = gpu->allocate(bytes), gradients = gpu->allocate(bytes), states = gpu->allocate(2 * bytes),
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
      const std::vector<double> rates{0.1, 0.05};
      const auto update = make_cuda_update(*gpu, *optimizer, bindings, at(gradients), count,
                                           {.loss_scale = 0.25F, .clip_norm = clip, .rates = rates}, *stream);
      for (std::uint64_t t = 1; t <= 5; ++t) {
        arena.fill_gradients(t);
        gpu->copy(arena.gradients.data(), gradients.data(), bytes, *stream);
        update->step(reinterpret_cast<const StepControl*>(control.data()), *stream);
        DeviceOutcome outcome{};
        gpu->copy(update->outcome(), &outcome, sizeof outcome, *stream);
        std::vector<float> found(count);
        gpu->copy(values.data(), found.data(), bytes, *stream);
        stream->synchronize();
        REQUIRE(outcome.applied == 1);
        REQUIRE(outcome.updates == t);
        const double factor = clip > 0 ? clip_factor(outcome.gradient_norm, clip) / 3 : 1 / (12 * 0.25);
        optimizer->step(arena.whole(), {rates[t > 1 ? 1 : 0], factor, t}, cpu);
        INFO(name << ", clip " << clip << ", update " << t);
        for (std::size_t i = 0; i < count; ++i)  // a GPU's pow may round a bias correction's last bit otherwise
          REQUIRE(found[i] == Approx(arena.values[i]).epsilon(1e-6).margin(1e-7));
      }
    }
}
