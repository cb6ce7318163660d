// ronda_kv.h, handed on to a KeyValueStore.
#include <mpi.h>

#include <ronda/collectives/mpi_world.hpp>
#include <ronda/core/error.hpp>
#include <ronda/ronda_kv.h>
#include <ronda/runtime/key_value/key_value_store.hpp>

#include <ronda/bindings/c/guarded.hpp>
#include <ronda/bindings/c/world_keeper.hpp>

#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

struct ronda_kv {
  ronda_kv(ronda::World given_world, const ronda::KeyValueOptions& options)
      : world(std::move(given_world)), store(world.communicator(), options) {}

  ronda::World world;
  ronda::KeyValueStore store;
  std::string failure;  ///< of the ranks together, or of this server: nobody waits for them any more
  bool served = false;  ///< a server's work is done
};

namespace {

using ronda::given;
using ronda::guarded;
using ronda::InputError;

ronda_kv_options default_kv_options() {
  ronda_kv_options options{};
  options.size = sizeof options;
  options.servers = 1;
  options.max_staleness = -1;
  options.communication_timeout = ronda::WorldOptions().communication_timeout;
  return options;
}

void require_known_kv_size(std::size_t size) {
  if (size < sizeof(std::size_t) || size > sizeof(ronda_kv_options))
    throw InputError("options have a size of " + std::to_string(size) + ", expected " +
                     std::to_string(sizeof(std::size_t)) + " to " + std::to_string(sizeof(ronda_kv_options)) +
                     ": give ronda_kv_default_options their sizeof first, and the library this header's version");
}

ronda_kv_options completed_kv(const ronda_kv_options* options) {
  ronda_kv_options all = default_kv_options();
  if (options == nullptr) return all;
  require_known_kv_size(options->size);
  std::memcpy(&all, options, options->size);
  return all;
}

ronda::KeyValueOptions store_options(const ronda_kv_options& options) {
  ronda::KeyValueOptions result{.servers = options.servers,
                                .asynchronous = options.asynchronous != 0,
                                .replicas_to_aggregate = options.replicas_to_aggregate};
  if (options.server_ranks != nullptr) {
    if (options.servers < 1) throw InputError("servers is " + std::to_string(options.servers) + ", with server_ranks");
    result.server_ranks.assign(options.server_ranks, options.server_ranks + options.servers);
  }
  if (options.max_staleness >= 0) result.max_staleness = static_cast<std::uint64_t>(options.max_staleness);
  if (options.part_bytes != 0) result.part_bytes = options.part_bytes;
  if (options.ahead_bytes != 0) result.ahead_bytes = options.ahead_bytes;
  return result;
}

/// @param make  the world
void open_store(const ronda_kv_options* options, ronda_kv** store,
                const std::function<ronda::World(const ronda::WorldOptions&)>& make) {
  static_cast<void>(given(store, "store"));
  const ronda_kv_options all = completed_kv(options);
  const ronda::KeyValueOptions how = store_options(all);
  ronda::WorldOptions world_options;
  world_options.communication_timeout = all.communication_timeout;
  *store = std::make_unique<ronda_kv>(make(world_options), how).release();
}

/// After what fails on all ranks the store is not waited for.
template <class Body>
ronda_status with_store(ronda_kv* store, const Body& body) noexcept {
  return guarded([&] {
    ronda_kv& kv = given(store, "the store");
    try {
      body(kv.store);
    } catch (const ronda::CommunicationError& error) {
      kv.failure = error.what();
      throw;
    }
  });
}

std::span<const float> numbers(const float* data, std::size_t count, const char* what) {
  if (count > 0) static_cast<void>(given(data, what));
  return {data, count};
}

ronda::KeyValueUpdate update_by(ronda_kv_update update, void* context) {
  return [update, context](const ronda::KeyPart& part, std::uint64_t updates, std::span<float> values,
                           std::span<const float> gradient) {
    const ronda_kv_part shown{part.key.c_str(), part.begin, part.count, part.total};
    if (const int status = update(&shown, updates, values.data(), gradient.data(), context); status != 0)
      throw InputError("the update of '" + part.key + "' returned " + std::to_string(status));
  };
}

}  // namespace

ronda_status ronda_kv_default_options(ronda_kv_options* options, size_t size) {
  return guarded([&] {
    require_known_kv_size(size);
    ronda_kv_options defaults = default_kv_options();
    defaults.size = size;
    std::memcpy(&given(options, "options"), &defaults, size);
  });
}

ronda_status ronda_kv_open(const ronda_kv_options* options, ronda_kv** store) {
  return guarded([&] {
    require_sense(store_options(completed_kv(options)));  // before MPI starts, which cannot start again
    open_store(options, store, [](const ronda::WorldOptions& world_options) {
      int argc = 0;
      char** argv = nullptr;
      return ronda::World(argc, argv, world_options);
    });
  });
}

ronda_status ronda_kv_open_comm(int communicator, const ronda_kv_options* options, ronda_kv** store) {
  return guarded([&] {
    ronda::require_mpi();
    open_store(options, store, [communicator](const ronda::WorldOptions& world_options) {
      return ronda::World::adopt(MPI_Comm_f2c(communicator), world_options);
    });
  });
}

ronda_status ronda_kv_is_server(const ronda_kv* store, int* server) {
  return guarded([&] { given(server, "server") = given(store, "the store").store.is_server() ? 1 : 0; });
}

ronda_status ronda_kv_index(const ronda_kv* store, int* index, int* of) {
  return guarded([&] {
    const ronda::KeyValueStore& ranks = given(store, "the store").store;
    given(index, "index") = ranks.roles().index_of(ranks.rank());
    given(of, "of") = ranks.is_server() ? ranks.roles().servers() : ranks.roles().workers();
  });
}

ronda_status ronda_kv_set_optimizer(ronda_kv* store, const char* name, double learning_rate) {
  return with_store(store, [&](ronda::KeyValueStore& values) {
    const std::string optimizer = &given(name, "name");
    const double rate = learning_rate == 0 ? ronda::default_learning_rate(optimizer) : learning_rate;
    values.set_updater({.name = optimizer}, ronda::Schedule({.learning_rate = rate}));
  });
}

ronda_status ronda_kv_set_updater(ronda_kv* store, ronda_kv_update update, void* context) {
  return with_store(store, [&](ronda::KeyValueStore& values) {
    if (update == nullptr) throw InputError("update is NULL");
    values.set_updater(update_by(update, context));
  });
}

ronda_status ronda_kv_serve(ronda_kv* store) {
  return guarded([&] {
    ronda_kv& kv = given(store, "the store");
    try {
      kv.store.serve();
      kv.served = true;
    } catch (const std::exception& error) {  // of the update, too: the workers have been told
      if (kv.store.is_server()) kv.failure = error.what();
      throw;
    }
  });
}

ronda_status ronda_kv_init(ronda_kv* store, const char* key, const float* values, size_t count) {
  return with_store(store, [&](ronda::KeyValueStore& all) {
    all.init(std::string_view(&given(key, "key")), numbers(values, count, "values"));
  });
}

ronda_status ronda_kv_push(ronda_kv* store, const char* key, const float* gradient, size_t count) {
  return with_store(
      store, [&](ronda::KeyValueStore& all) { all.push(&given(key, "key"), numbers(gradient, count, "gradient")); });
}

ronda_status ronda_kv_pull(ronda_kv* store, const char* key, float* values, size_t count) {
  return with_store(store, [&](ronda::KeyValueStore& all) {
    static_cast<void>(numbers(values, count, "values"));
    all.pull(&given(key, "key"), std::span(values, count));
  });
}

ronda_status ronda_kv_version(const ronda_kv* store, const char* key, uint64_t* updates) {
  return guarded([&] { given(updates, "updates") = given(store, "the store").store.version(&given(key, "key")); });
}

ronda_status ronda_kv_barrier(ronda_kv* store) {
  return with_store(store, [](ronda::KeyValueStore& values) { values.barrier(); });
}

/// Where something has failed, the store goes while an exception is under way, and so waits for nobody.
ronda_status ronda_kv_close(ronda_kv* store) {
  return guarded([&] {
    const std::unique_ptr<ronda_kv> owned(&given(store, "the store"));
    const auto fail = [&] { throw ronda::CommunicationError(owned->failure); };
    if (!owned->failure.empty() && owned->store.is_server()) fail();
    if (!owned->failure.empty()) owned->store.run(fail);  // a worker leaves: servers wait for no more of it
    if (owned->store.is_server() && !owned->served)
      throw ronda::LogicError("a server of a key-value store is closed after ronda_kv_serve; the workers wait for it");
    if (!owned->store.is_server()) owned->store.close();
  });
}

ronda_status ronda_kv_leave(ronda_kv* store, const char* why) {
  const ronda_status status = guarded([&] {
    const std::unique_ptr<ronda_kv> owned(&given(store, "the store"));
    const std::string reason = &given(why, "why");
    if (owned->store.is_server()) throw ronda::LogicError("ronda_kv_leave is for workers");
    owned->store.run([&] { throw ronda::InputError(reason); });  // the others hear that, and nobody waits for them
  });
  return status == RONDA_ERROR_INPUT && store != nullptr && why != nullptr ? RONDA_OK : status;
}
