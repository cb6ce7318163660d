#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include <ronda/collectives/compression.hpp>

namespace ronda {

/// What is made of the mean of the ranks' changes.
enum class OuterOptimizer : std::uint8_t {
  average,   ///< the mean of the ranks' parameters
  nesterov,  ///< a step of SGD with Nesterov's momentum, whose gradient is the mean change
};
/// average or nesterov. Throws InputError that lists the names.
[[nodiscard]] OuterOptimizer parse_outer_optimizer(std::string_view name);
[[nodiscard]] std::string_view name_of(OuterOptimizer optimizer) noexcept;

/// How ranks train that synchronise once in several steps: see LocalSteps.
struct LocalSgdOptions {
  std::uint64_t synchronise_every = 50;  ///< steps; 1 or more
  OuterOptimizer outer_optimizer = OuterOptimizer::average;
  std::optional<double> outer_rate = {};              ///< of nesterov: above 0; not given: 0.7
  std::optional<double> outer_momentum = {};          ///< of nesterov: from 0 on, below 1; not given: 0.9
  std::uint64_t local_after = 0;                      ///< updates that are mirrored ones, before the first local step
  Compression delta_compression = Compression::none;  ///< of what is sent of the changes
  /// Pieces of the parameters, of about equal bytes and of whole parameters, that synchronise each at its own time
  /// within the `synchronise_every` steps; at most so many. Their changes travel while the next steps compute, and are
  /// applied `fragment_delay` steps later, which is less than `synchronise_every`. Replicas are equal only after
  /// Strategy::synchronise_next, with which a loop of one's own ends.
  std::size_t fragments = 1;
  std::uint64_t fragment_delay = 1;

  [[nodiscard]] double rate() const noexcept {
    return outer_optimizer == OuterOptimizer::average ? 1 : outer_rate.value_or(0.7);
  }
  [[nodiscard]] double momentum() const noexcept {
    return outer_optimizer == OuterOptimizer::average ? 0 : outer_momentum.value_or(0.9);
  }
};

/// Throws InputError for values that cannot work; it names fields of TrainingOptions.
void check(const LocalSgdOptions& options);

/// What synchronising has cost this rank so far.
struct SynchronisationCosts {
  std::uint64_t count = 0;       ///< synchronisations, of fragments each
  std::uint64_t sent_bytes = 0;  ///< in messages, for them and for agreeing on sums
  double waited_seconds = 0;
  double total_seconds = 0;  ///< that what was sent was under way, waited for or not
};

}  // namespace ronda
