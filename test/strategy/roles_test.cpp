// Servers may be any ranks: what is computed does not depend on which.
#include "strategy/compared_runs.hpp"
#include "strategy/device_run.hpp"
#include "support/catch.hpp"
#include "support/message.hpp"
#include "support/ranks.hpp"
#include "support/toy_data.hpp"

#include <numeric>
#include <string>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/runtime/key_value/roles.hpp>
#include <ronda/runtime/strategy/exchange/arena_shares.hpp>

using namespace ronda;
using namespace ronda::test;

namespace roles_test {
namespace {

Sequential with_statistics() {
  return Sequential(Conv2d(6, 3, {.bias = false}), BatchNorm(), ReLU(), Flatten(), Dense(4));
}

/// The first ranks, or from the second one on.
std::vector<int> servers_from(int first, int count) {
  std::vector<int> ranks(static_cast<std::size_t>(count));
  std::iota(ranks.begin(), ranks.end(), first);
  return ranks;
}

}  // namespace

TEST_CASE("servers and workers are counted in the order of their ranks") {
  const Roles roles = Roles::of_servers(5, {3, 0});
  CHECK((roles.ranks() == 5 && roles.servers() == 2 && roles.workers() == 3));
  CHECK(
      (roles.is_server(0) && !roles.is_server(1) && !roles.is_server(2) && roles.is_server(3) && !roles.is_server(4)));
  CHECK((roles.rank_of_server(0) == 0 && roles.rank_of_server(1) == 3));
  CHECK((roles.rank_of_worker(0) == 1 && roles.rank_of_worker(1) == 2 && roles.rank_of_worker(2) == 4));
  CHECK((roles.index_of(3) == 1 && roles.index_of(4) == 2 && roles.index_of(0) == 0 && roles.index_of(1) == 0));
  CHECK(Roles(5, 2) == Roles::of_servers(5, {3, 4}));
  const auto refused = [](int ranks, const std::vector<int>& servers) {
    return message_of<InputError>([&] { static_cast<void>(Roles::of_servers(ranks, servers)); });
  };
  require_mentions(refused(3, {}), {"no rank is a server"});
  require_mentions(refused(3, {1, 1}), {"rank 1", "twice"});
  require_mentions(refused(3, {3}), {"rank 3", "3 ranks"});
  require_mentions(refused(2, {0, 1}), {"no rank is left as a worker"});
  const auto shares = shares_of_servers(1000, roles);
  CHECK((shares[0] == Range{0, 496} && shares[3] == Range{496, 1000} && shares[1].size() == 0));
  CHECK(sizes_of_servers(shares, roles) == std::vector<std::size_t>{496, 504});
}

TEST_CASE("where servers stand changes no bit") {
  const MemoryDataset data = toy_images(131, {12, 12, 1}, 4);
  for (const int servers : server_counts())
    for (const int wanted : {0, world().size() - servers})  // 0: steps of all workers
      for (const bool clips : {false, true}) {
        DeviceSet set{.global_batch = 50, .optimizer = "adam", .clip_norm = clips ? 0.1 : 0, .ema_decay = 0.9};
        set.compression = clips ? Compression::int8 : Compression::two_bit;
        std::vector<std::string> hashes, states;
        for (const int first : {world().size() - servers, 0, 1}) {
          if (first + servers > world().size()) continue;
          INFO(servers << " servers from rank " << first);
          set.strategy = ParameterServer{.server_ranks = servers_from(first, servers), .replicas_to_aggregate = wanted};
          DeviceRun run(everybody(), nullptr, with_statistics(), data, set);
          CHECK(run.strategy.shard().is_empty() == (world().rank() >= first && world().rank() < first + servers));
          for (int k = 0; k < 5; ++k) {
            if (k == 4) run.strategy.synchronise_next();
            run.step();
          }
          run.strategy.state().gather_state();
          run.strategy.state().average_states();
          hashes.push_back(run.strategy.parameter_hash());
          run.strategy.state().with_average([&] { hashes.back() += run.strategy.parameter_hash(); });
          const auto saved = run.strategy.state().divided().whole();
          run.strategy.state().gather_state();
          CHECK(sum_over_ranks(std::ssize(saved)) == 2 * std::ssize(run.strategy.parameters()));
          for (const auto& [name, numbers] : layer_states_of(run.strategy)) {
            std::vector<float> of_first = numbers;
            everybody().broadcast(Tensor(std::span(of_first)));
            CHECK(numbers == of_first);
          }
        }
        for (const std::string& hash : hashes) CHECK(hash == hashes.front());
      }
}

TEST_CASE("asynchronous workers train with servers anywhere") {
  const MemoryDataset data = toy_images(131, {9, 7, 1}, 4);
  for (const int servers : server_counts()) {
    DeviceSet set{.global_batch = 25, .optimizer = "sgd"};
    set.strategy = ParameterServer{.servers = servers, .server_ranks = servers_from(0, servers), .asynchronous = true};
    DeviceRun run(everybody(), nullptr, three_layers(), data, set);
    constexpr std::size_t steps = 20;
    for (std::size_t k = 0; k < steps; ++k) {
      static_cast<void>(run.strategy.samples_for(k, steps));
      if (k + 1 == steps) run.strategy.synchronise_next();
      run.step();
    }
    CHECK(run.strategy.updates() == steps);
    CHECK_FALSE(run.strategy.parameter_hash().empty());
  }
}

}  // namespace roles_test
