#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/option.hpp>
#include <ronda/data/batch_plan.hpp>
#include <ronda/runtime/key_value/key_value_store.hpp>
#include <ronda/runtime/strategy/step/demands.hpp>

namespace ronda {

class ExchangePlan;

/// Some ranks, the servers, store the parameters and optimizer states, and apply updates; the others, the workers,
/// compute: see ParameterServers and OwnPace.
struct ParameterServer {
  static constexpr std::string_view name = "parameter_server";

  int servers = 1;                     ///< number of servers: the last ranks
  bool servers_beside = false;         ///< use half of each host's ranks, the last ones, as servers
  std::filesystem::path cluster = {};  ///< file with the tasks, see cluster_file.hpp
  std::vector<int> server_ranks = {};  ///< the servers, any ranks; the trainer sets it from the two options above
  int replicas_to_aggregate = 0;       ///< a step takes the gradients of the first N workers; 0: of all
  bool asynchronous = false;           ///< a step takes one worker's gradient; a batch is one worker's
  std::optional<std::uint64_t> max_staleness = {};  ///< with `asynchronous`: see KeyValueOptions

  [[nodiscard]] int count() const noexcept {
    return server_ranks.empty() ? servers : static_cast<int>(server_ranks.size());
  }
  /// True if workers do not wait for each other.
  [[nodiscard]] bool own_pace() const noexcept { return asynchronous || replicas_to_aggregate > 0; }
  [[nodiscard]] KeyValueOptions key_values() const;
  /// Throws as Roles does.
  [[nodiscard]] Roles roles(int ranks) const { return roles_of(key_values(), ranks); }
};

/// Throws InputError for invalid values, and for demands that this strategy cannot meet.
void check(const ParameterServer& options, const Demands& demands);

[[nodiscard]] std::unique_ptr<ExchangePlan> exchange_plan(const ParameterServer& options);

/// This rank's part of the data if the last `servers` ranks have none; if asynchronous, each worker computes all
/// samples of some steps. Not collective. Throws as Roles does.
[[nodiscard]] Shard shard_of(const Communicator& communicator, int servers, bool asynchronous = false);
/// The same with servers on any ranks.
[[nodiscard]] Shard shard_of(const Communicator& communicator, const Roles& roles, bool asynchronous = false);

/// Calls `see(Option, field)` for each field.
template <class Options, class Settle, class Visitor>
void visit_parameter_server(Options& o, const Settle& settle, Visitor&& see) {
  see(settle(Option{.name = "servers",
                    .help = "Number of servers, the last ranks",
                    .unread = o.servers_beside ? "with " + setting("servers_beside") + ", which says how many there are"
                              : !o.cluster.empty() ? "with " + setting("cluster") + ", which says how many there are"
                                                   : ""}),
      o.servers);
  see(settle(Option{.name = "servers-beside", .help = "Make half of each host's ranks servers"}), o.servers_beside);
  see(settle(Option{
          .name = "cluster", .help = "JSON file of roles: TensorFlow's ClusterSpec or TF_CONFIG", .otherwise = "none"}),
      o.cluster);
  see(settle(Option{.name = "replicas-to-aggregate",
                    .help = "Gradients that a step takes; later ones are dropped; 0: all"}),
      o.replicas_to_aggregate);
  see(settle(Option{.name = "asynchronous", .help = "Apply each worker's gradient as it comes"}), o.asynchronous);
  see(settle(Option{.name = "max-staleness", .help = "Gradients that a worker may be ahead of the slowest"}),
      o.max_staleness);
}

}  // namespace ronda
