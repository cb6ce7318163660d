#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include <ronda/core/option.hpp>
#include <ronda/runtime/strategy/step/demands.hpp>

namespace ronda {

class ExchangePlan;

/// Elastic averaging SGD: each rank makes local steps; every `communicate_every` steps its parameters and the center,
/// which all ranks have alike, move towards each other: see ElasticSteps.
struct Easgd {
  static constexpr std::string_view name = "easgd";
  static constexpr bool saves_change_steps = true;  ///< a save makes all replicas equal to the center

  std::uint64_t communicate_every = 10;  ///< steps, at least 1
  /// Part of its distance from the center by which each rank moves: above 0, at most 1 / ranks. Nullopt: 0.9 / ranks.
  std::optional<double> moving_rate = {};

  [[nodiscard]] double rate(int ranks) const noexcept { return moving_rate.value_or(0.9 / ranks); }
};

/// Throws InputError for invalid values.
/// @param ranks  number of ranks
void check(const Easgd& options, int ranks);
/// Throws InputError for invalid values, on any number of ranks, and for demands that this strategy cannot meet.
void check(const Easgd& options, const Demands& demands);

[[nodiscard]] std::unique_ptr<ExchangePlan> exchange_plan(const Easgd& options);

/// Calls `see(Option, field)` for each field.
/// @param settle  completes each Option, whose help is a phrase and whose field is a member of this struct
template <class Options, class Settle, class Visitor>
void visit_easgd(Options& o, const Settle& settle, Visitor&& see) {
  const auto of = [&](Option option) {
    option.matters = true;
    return settle(std::move(option));
  };
  see(of({.name = "communicate-every", .help = "Steps between two moves towards the center"}), o.communicate_every);
  see(of({.name = "moving-rate",
          .help = "Part of its distance from the center that each rank moves",
          .otherwise = "0.9 / ranks"}),
      o.moving_rate);
}

}  // namespace ronda
