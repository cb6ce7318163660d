#include <ronda/core/names.hpp>
#include <ronda/core/random.hpp>
#include <ronda/layers/initializer.hpp>

#include <array>
#include <cmath>
#include <string>
#include <vector>
#include <utility>

namespace ronda {
namespace {

constexpr EnumNames<Initializer, 10> initializer_names{{
    {Initializer::he_normal, "he_normal"},
    {Initializer::he_uniform, "he_uniform"},
    {Initializer::glorot_normal, "glorot_normal"},
    {Initializer::glorot_uniform, "glorot_uniform"},
    {Initializer::zeros, "zeros"},
    {Initializer::ones, "ones"},
    {Initializer::he_normal, "kaiming_normal"},
    {Initializer::he_uniform, "kaiming_uniform"},
    {Initializer::glorot_normal, "xavier_normal"},
    {Initializer::glorot_uniform, "xavier_uniform"},
}};

/// Variance of the weights: He et al., "Delving deep into rectifiers", ICCV 2015; Glorot and Bengio, AISTATS 2010.
double variance(Initializer initializer, double fan_in, double fan_out) {
  if (initializer == Initializer::standard_normal) return 1;
  const bool he = initializer == Initializer::he_normal || initializer == Initializer::he_uniform;
  return he ? 2.0 / fan_in : 2.0 / (fan_in + fan_out);
}

}  // namespace

Initializer parse_initializer(std::string_view name) { return parse_name(initializer_names, name, "an initializer"); }

std::string_view name_of(Initializer initializer) noexcept { return find_name(initializer_names, initializer); }

void initialize(const Parameter& parameter, Initializer initializer, std::int64_t fan_in, std::int64_t fan_out,
                std::uint64_t seed) {
  const bool constant = fan_in == 0 || initializer == Initializer::zeros || initializer == Initializer::ones;
  const float one_value = fan_in > 0 && initializer == Initializer::ones ? 1.0F : 0.0F;
  std::vector<float> values(static_cast<std::size_t>(parameter.value.desc().count()), one_value);
  if (!constant) {
    const RngKey key(seed, Purpose::initial_values, parameter.name);
    const double deviation =
        std::sqrt(variance(initializer, static_cast<double>(fan_in), static_cast<double>(fan_out)));
    const bool normal = initializer != Initializer::he_uniform && initializer != Initializer::glorot_uniform;
    const auto scale = static_cast<float>(normal ? deviation : deviation * std::sqrt(3.0));  // uniform in ±√3·deviation
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = scale * (normal ? key.normal(i) : 2 * key.uniform(i) - 1);
  }
  from_file(parameter, values, parameter.value);
}

}  // namespace ronda
