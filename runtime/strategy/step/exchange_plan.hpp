#pragma once
#include <any>
#include <concepts>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/collectives/fusion_buffer.hpp>
#include <ronda/core/event_sink.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/data/batch_plan.hpp>
#include <ronda/optim/optimizer.hpp>
#include <ronda/runtime/strategy/replica/replica.hpp>
#include <ronda/runtime/strategy/step/gradient_exchange.hpp>

namespace ronda {

/// Settings of MirroredOptions that an exchange depends on.
struct ExchangeSettings {
  FusionOptions fusion;
  std::size_t micro_batches = 1;
  std::size_t node_update_bytes = 0;  ///< see MirroredOptions
  bool keeps_average = false;         ///< an average of the parameters is kept
};

/// How the ranks of a MirroredStrategy exchange gradients, decided before memory is allocated. Each strategy whose
/// ranks hold the whole model has one, made by `exchange_plan(options)`; docs/extending.md shows a custom one.
class ExchangePlan {
 public:
  virtual ~ExchangePlan() = default;

  /// This rank's part of the data of a step (`of_step`), or of a test; empty on a rank that computes nothing.
  [[nodiscard]] virtual Shard shard(const Communicator& communicator, bool of_step) const;
  /// True if no rank has an empty shard.
  [[nodiscard]] virtual bool all_ranks_compute() const noexcept { return true; }
  /// By rank: the elements of the arena whose optimizer states the rank stores; empty: all ranks store all.
  [[nodiscard]] virtual std::vector<Range> shares_of_states(int /*ranks*/, std::size_t /*elements*/) const {
    return {};
  }
  /// True if the ranks of a node share one copy of the parameters and of their average.
  [[nodiscard]] virtual bool has_one_copy(const Communicator& /*communicator*/) const { return false; }
  /// Bytes of gradients on a rank: the arena, its sums, and lists of touched rows.
  [[nodiscard]] virtual std::size_t gradient_bytes(const Replica& replica, const ExchangeSettings& settings,
                                                   int ranks) const;
  /// Throws InputError, with reason and remedy, if this exchange cannot train this model with this optimizer.
  virtual void require_possible(const Replica& /*replica*/, const Optimizer& /*optimizer*/,
                                const ExchangeSettings& /*settings*/) const {}
  /// Lines for --verbose on this rank, such as the elements that it updates.
  [[nodiscard]] virtual std::vector<std::string> describe(const Communicator& /*communicator*/,
                                                          std::size_t /*elements*/) const {
    return {};
  }
  /// Gives `replica` its arenas, in memory that the other ranks reach, and makes the exchange, which the replica
  /// outlives. Collective; errors are agreed.
  /// @param settings  `fusion.dtype` is the type in which gradients are summed
  [[nodiscard]] virtual std::unique_ptr<GradientExchange> make(Communicator& communicator, Replica& replica,
                                                               const ExchangeSettings& settings,
                                                               EventSink& sink) const = 0;
};

/// Allocates a replica's arenas in this rank's own memory. Not collective. Throws ResourceError.
void take_own_arenas(Replica& replica);

/// `elements 0 to 16 of 40`, for reports.
[[nodiscard]] std::string text_of_elements(const Range& range, std::size_t all);

/// The options of one strategy, of any type: `.strategy = Sharded{.one_copy = true}`. A strategy's options have a
/// `name`. If its ranks hold the whole model, `exchange_plan(options)` is declared beside them, and a MirroredStrategy
/// can run it; a program can bring its own, see docs/extending.md.
class StrategyChoice {
 public:
  /// The default strategy: Mirrored.
  StrategyChoice() = default;
  template <class Options>
  requires requires {
    { Options::name } -> std::convertible_to<std::string_view>;
  }
  StrategyChoice(Options options) : name_(Options::name), options_(std::move(options)) {
    if constexpr (requires(const Options& kept) { exchange_plan(kept); })
      plan_ = [](const std::any& kept) { return exchange_plan(*std::any_cast<Options>(&kept)); };
  }

  /// Empty: the default.
  [[nodiscard]] std::string_view name() const noexcept { return name_; }
  [[nodiscard]] bool is_default() const noexcept { return name_.empty(); }
  /// The options of this strategy; null if another one is selected.
  template <class Strategy>
  [[nodiscard]] const Strategy* as() const noexcept {
    return std::any_cast<Strategy>(&options_);
  }
  /// The same; default options if none was selected. Throws InputError if another one was.
  template <class Strategy>
  [[nodiscard]] Strategy or_default() const {
    if (const auto* chosen = as<Strategy>()) return *chosen;
    if (!is_default()) refuse(Strategy::name);
    return {};
  }
  /// Throws InputError if the ranks of this strategy hold parts of the model, or if none was selected.
  [[nodiscard]] std::unique_ptr<ExchangePlan> plan() const;

 private:
  [[noreturn]] void refuse(std::string_view wanted) const;

  std::string_view name_;
  std::any options_;
  std::unique_ptr<ExchangePlan> (*plan_)(const std::any&) = nullptr;
};

}  // namespace ronda
