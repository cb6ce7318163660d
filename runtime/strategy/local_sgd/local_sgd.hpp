#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <ronda/collectives/compression.hpp>
#include <ronda/core/option.hpp>
#include <ronda/runtime/strategy/step/demands.hpp>

namespace ronda {

class ExchangePlan;

/// How the mean of the ranks' parameter changes is applied.
enum class OuterOptimizer : std::uint8_t {
  average,   ///< use the mean of the ranks' parameters
  nesterov,  ///< one step of SGD with Nesterov momentum, with the mean change as gradient
};
/// Parses average or nesterov. Throws an InputError that lists the names.
[[nodiscard]] OuterOptimizer parse_outer_optimizer(std::string_view name);
[[nodiscard]] std::string_view name_of(OuterOptimizer optimizer) noexcept;

/// Each rank makes local steps; every `synchronise_every` steps all ranks take the mean of their parameters: see
/// LocalSteps.
struct LocalSgd {
  static constexpr std::string_view name = "local_sgd";
  static constexpr bool saves_change_steps = true;  ///< a save synchronises

  std::uint64_t synchronise_every = 50;  ///< steps, at least 1
  OuterOptimizer outer_optimizer = OuterOptimizer::average;
  std::optional<double> outer_rate = {};              ///< for nesterov: above 0; nullopt: 0.7
  std::optional<double> outer_momentum = {};          ///< for nesterov: in [0, 1); nullopt: 0.9
  std::uint64_t local_after = 0;                      ///< number of mirrored updates before the first local step
  Compression delta_compression = Compression::none;  ///< compression of the parameter changes
  /// Maximum number of fragments: pieces of about equal bytes, made of whole parameters, which synchronise at different
  /// times within the `synchronise_every` steps. Their changes are sent while the next steps compute, and applied
  /// `fragment_delay` steps later, which is less than `synchronise_every`. Replicas are equal only after
  /// Strategy::synchronise_next, which a custom loop must call for its last step.
  std::size_t fragments = 1;
  std::uint64_t fragment_delay = 1;

  [[nodiscard]] double rate() const noexcept {
    return outer_optimizer == OuterOptimizer::average ? 1 : outer_rate.value_or(0.7);
  }
  [[nodiscard]] double momentum() const noexcept {
    return outer_optimizer == OuterOptimizer::average ? 0 : outer_momentum.value_or(0.9);
  }
};

/// Throws InputError for invalid values.
void check(const LocalSgd& options);
/// Throws InputError for demands that this strategy cannot meet.
void check(const LocalSgd& options, const Demands& demands);

[[nodiscard]] std::unique_ptr<ExchangePlan> exchange_plan(const LocalSgd& options);

/// Calls `see(Option, field)`, or `see(Option, field, parse)`, for each field.
/// @param settle  completes each Option, whose help is a phrase and whose field is a member of this struct
template <class Options, class Settle, class Visitor>
void visit_local_sgd(Options& o, const Settle& settle, Visitor&& see) {
  const auto of = [&](Option option) {
    option.matters = true;
    return settle(std::move(option));
  };
  see(of({.name = "synchronise-every", .help = "Steps between two synchronisations"}), o.synchronise_every);
  see(of({.name = "outer-optimizer", .help = "Applied to the mean change of all ranks: average, nesterov"}),
      o.outer_optimizer, parse_outer_optimizer);
  see(of({.name = "outer-rate", .help = "Learning rate of the outer optimizer nesterov", .otherwise = "0.7"}),
      o.outer_rate);
  see(of({.name = "outer-momentum", .help = "Momentum of the outer optimizer nesterov", .otherwise = "0.9"}),
      o.outer_momentum);
  see(of({.name = "local-after", .help = "Mirrored steps before the first local one"}), o.local_after);
  see(of({.name = "delta-compression", .help = "Of changes on the wire: none, bf16, fp16, int8, int4, 2bit, auto"}),
      o.delta_compression, parse_compression);
  see(of({.name = "fragments", .help = "Pieces of the parameters that synchronise at different times"}), o.fragments);
  see(of({.name = "fragment-delay",
          .help = "Steps after which a fragment's mean change is applied",
          .unread =
              o.fragments == 1 ? "for " + setting("fragments", "1") + ": all parameters synchronise at once" : ""}),
      o.fragment_delay);
}

}  // namespace ronda
