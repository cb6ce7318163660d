#include <ronda/layers/initializer.hpp>
#include <ronda/runtime/core/error.hpp>
#include <ronda/runtime/core/random.hpp>

#include <array>
#include <cmath>
#include <string>
#include <vector>
#include <utility>

namespace ronda {
namespace {

constexpr std::array<std::pair<std::string_view, Initializer>, 9> names{{
    {"he_normal", Initializer::he_normal},
    {"he_uniform", Initializer::he_uniform},
    {"glorot_normal", Initializer::glorot_normal},
    {"glorot_uniform", Initializer::glorot_uniform},
    {"zeros", Initializer::zeros},
    {"kaiming_normal", Initializer::he_normal},
    {"kaiming_uniform", Initializer::he_uniform},
    {"xavier_normal", Initializer::glorot_normal},
    {"xavier_uniform", Initializer::glorot_uniform},
}};

/// Variance of the weights: He et al., "Delving deep into rectifiers", ICCV 2015; Glorot and Bengio, AISTATS 2010.
double variance(Initializer initializer, double fan_in, double fan_out) {
  const bool he = initializer == Initializer::he_normal || initializer == Initializer::he_uniform;
  return he ? 2.0 / fan_in : 2.0 / (fan_in + fan_out);
}

}  // namespace

Initializer parse_initializer(std::string_view name) {
  for (const auto& [known, initializer] : names)
    if (known == name) return initializer;
  std::string list;
  for (const auto& [known, initializer] : names) list += (list.empty() ? "" : ", ") + std::string(known);
  throw InputError("no initializer is called '" + std::string(name) + "'; there are " + list);
}

std::string_view name_of(Initializer initializer) noexcept {
  for (const auto& [known, value] : names)
    if (value == initializer) return known;
  return "?";
}

void initialize(const Parameter& parameter, Initializer initializer, std::int64_t fan_in, std::int64_t fan_out,
                std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(parameter.value.desc().count()), 0.0F);
  if (fan_in > 0 && initializer != Initializer::zeros) {
    const RngKey key(seed, Purpose::initial_values, parameter.name);
    const double deviation =
        std::sqrt(variance(initializer, static_cast<double>(fan_in), static_cast<double>(fan_out)));
    const bool normal = initializer == Initializer::he_normal || initializer == Initializer::glorot_normal;
    const auto scale = static_cast<float>(normal ? deviation : deviation * std::sqrt(3.0));  // uniform in ±√3·deviation
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = scale * (normal ? key.normal(i) : 2 * key.uniform(i) - 1);
  }
  from_file(parameter, values, parameter.value);
}

}  // namespace ronda
