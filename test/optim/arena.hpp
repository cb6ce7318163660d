#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ronda/core/random.hpp>
#include <ronda/optim/make_optimizer.hpp>

namespace ronda::test {

/// All that are built in, and a case for each rule of those that have several.
[[nodiscard]] inline std::vector<OptimizerOptions> every_optimizer(std::optional<double> weight_decay = {}) {
  std::vector<OptimizerOptions> all;
  for (const OptimizerRow& row : optimizer_rows()) all.push_back({.name = std::string(row.name)});
  all.push_back({.name = "nadam", .momentum_decay = 0});
  all.push_back({.name = "adagrad", .initial_accumulator_value = 0.25});
  all.push_back({.name = "rmsprop", .momentum = 0.5});
  all.push_back({.name = "rmsprop", .centered = true});
  all.push_back({.name = "rmsprop", .momentum = 0.5, .centered = true});
  for (auto& options : all) options.weight_decay = weight_decay;
  return all;
}

/// Those of them that kernels can apply.
[[nodiscard]] inline std::vector<OptimizerOptions> every_rule(std::optional<double> weight_decay = {}) {
  std::vector<OptimizerOptions> all = every_optimizer(weight_decay);
  std::erase_if(all, [](const OptimizerOptions& options) { return make_optimizer(options)->on_processor_alone(); });
  return all;
}

[[nodiscard]] inline std::string text_of(const OptimizerOptions& options) {
  return options.name + (options.momentum ? " with momentum" : "") +
         (options.momentum_decay == 0.0 ? " without decay of momentum" : "") +
         (options.initial_accumulator_value ? " from an initial value" : "") + (options.centered ? ", centered" : "");
}

/// How gradients are clipped: not, by their norm, by value.
struct Clipping {
  double norm = 0, value = 0;
};
inline constexpr Clipping clippings[] = {{}, {.norm = 0.5}, {.value = 0.02}};

/// Gradients as clipping by value leaves their sums.
inline void clip_sums(std::vector<float>& sums, const Clipping& clip, double factor) {
  if (clip.value == 0) return;
  const auto limit = static_cast<float>(clip.value / factor);
  for (float& sum : sums) sum = std::clamp(sum, -limit, limit);
}

/// Four parameters in three groups, one of them frozen, with gaps between them, the last a matrix; random values.
struct Arena {
  explicit Arena(const Optimizer& optimizer)
      : values(4096 + 64), gradients(values.size()), states(optimizer.states().size()) {
    for (auto& state : states) state.resize(values.size());
    const std::vector<std::size_t> counts{5, 16, 33, 4000};
    std::size_t offset = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const Shape shape = i < 3 ? Shape{static_cast<std::int64_t>(counts[i])} : Shape{40, 100};
      segments.push_back({std::string(1, static_cast<char>('a' + i)), {shape, DType::float32, {}}, offset, i % 3});
      for (std::size_t k = 0; k < counts[i]; ++k)
        values[offset + k] = RngKey(1, Purpose::test, "values").normal(offset + k);
      offset += (counts[i] + 15) / 16 * 16;
    }
  }
  void fill_gradients(std::uint64_t step) {
    for (const auto& segment : segments)
      for (std::int64_t k = 0; k < segment.desc.count(); ++k)
        gradients[segment.offset + static_cast<std::size_t>(k)] =
            RngKey(step, Purpose::test, segment.name).normal(static_cast<std::uint64_t>(k));
  }
  [[nodiscard]] OptimizerBindings bindings() {
    OptimizerBindings result{
        .values = values.data(), .states = {}, .segments = segments, .groups = groups, .device = {}};
    for (auto& state : states) result.states.push_back(state.data());
    return result;
  }
  [[nodiscard]] ArenaRange whole() { return {values.data(), gradients.data(), values.size()}; }

  std::vector<float> values, gradients;
  std::vector<std::vector<float>> states;
  std::vector<ArenaSegment> segments;
  std::vector<ParameterGroup> groups{{}, {.rate_factor = 0.5, .weight_decay = 0}, {.frozen = true}};
};

}  // namespace ronda::test
