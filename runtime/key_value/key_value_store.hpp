#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/optim/make_optimizer.hpp>
#include <ronda/optim/schedule.hpp>
#include <ronda/runtime/key_value/roles.hpp>

namespace ronda {

class KeyValueServer;
class KeyValueWorker;
struct KeyValueOperation;

struct KeyValueOptions {
  int servers = 1;                     ///< number of servers: the last ranks of the group
  std::vector<int> server_ranks = {};  ///< if not empty: these ranks are the servers instead
  /// If true, each gradient is applied on arrival. Otherwise gradients are applied in rounds, by their mean.
  bool asynchronous = false;
  /// Number of gradients per round, each from a different worker; 0: one from each worker. With fewer than all workers,
  /// the slowest are *backups*: a gradient that arrives after its round is dropped and counted. Not with
  /// `asynchronous`.
  int replicas_to_aggregate = 0;
  /// With `asynchronous`: bound on how many more pushes of a key a worker may have than the slowest worker. Beyond it,
  /// the worker waits in its next push or pull of that key. If empty, no worker waits.
  std::optional<std::uint64_t> max_staleness = {};
  /// Longer values are divided into parts of at most this many bytes; a multiple of 64.
  std::size_t part_bytes = std::size_t{4} << 20;
  /// Bytes of a worker's gradients that each server stores for later rounds, and that a worker sends unacknowledged;
  /// further pushes wait. A server stores at most twice as many bytes per worker, plus one value.
  std::size_t ahead_bytes = std::size_t{256} << 20;
};

/// Roles of `ranks` ranks by these options. Throws InputError as Roles does.
[[nodiscard]] Roles roles_of(const KeyValueOptions& options, int ranks);
/// Throws InputError, which names the field, if an option is invalid.
void require_sense(const KeyValueOptions& options, int ranks);
/// The same for an unknown number of ranks: throws if no number of ranks makes the options valid.
void require_sense(const KeyValueOptions& options);

/// A part of a value, as stored on its server.
struct KeyPart {
  std::string key;
  std::size_t begin = 0;  ///< its first element in the value
  std::size_t count = 0;  ///< elements of the part
  std::size_t total = 0;  ///< elements of the value
};

/// A custom update rule. Called on the server, for one part at a time; may keep state between calls.
/// @param update    number of earlier updates of this part
/// @param values    the values to change
/// @param gradient  in rounds the mean of the workers' gradients; as long as `values`
using KeyValueUpdate = std::function<void(const KeyPart& part, std::uint64_t update, std::span<float> values,
                                          std::span<const float> gradient)>;

/// Counters of this rank. A value of several parts counts once per part.
struct KeyValueStatistics {
  std::uint64_t updates = 0;  ///< on a server: updates applied
  std::uint64_t dropped = 0;  ///< gradients that arrived after their round: on a server all, on a worker its own
  std::uint64_t waited = 0;   ///< on a server: pushes and pulls that waited for a slower worker (`max_staleness`)
  /// On a server, asynchronous: element s counts the gradients that were s updates old when applied, where all updates
  /// since the worker's pull count, including its own. The last element, 1023, also counts older gradients.
  std::vector<std::uint64_t> staleness = {};
  std::uint64_t sent_bytes = 0, received_bytes = 0;  ///< for values and gradients
};

/// A push or a pull in flight. A small value; copies refer to the same operation. Must not be used after its store is
/// destroyed.
class KeyValueHandle {
 public:
  KeyValueHandle() = default;
  KeyValueHandle(KeyValueWorker& worker, std::shared_ptr<const KeyValueOperation> operation)
      : worker_(&worker), operation_(std::move(operation)) {}
  /// Lets the store make progress. Throws like `wait`.
  [[nodiscard]] bool done() const;
  /// Throws CommunicationError if a server failed, another worker left, or ranks could not be reached.
  void wait() const;

 private:
  KeyValueWorker* worker_ = nullptr;
  std::shared_ptr<const KeyValueOperation> operation_;
};

/// Named float32 values, stored and updated by servers; workers read them (*pull*) and send their gradients (*push*). A
/// parameter server (Li et al., "Scaling distributed machine learning with the parameter server", OSDI 2014; MXNet's
/// KVStore). Values are distributed over the servers by bytes, large ones in parts.
///
///     KeyValueStore store(world.communicator(), {.servers = 1});
///     store.set_updater({.name = "sgd"}, Schedule({.learning_rate = 0.1}));
///     store.run([&] {                     // on workers; servers serve
///       store.init("weights", weights);   // by all workers
///       for (…) {
///         store.push("weights", gradient);
///         store.pull("weights", weights);
///       }
///     });
///
/// **Rounds** (synchronous). Round r makes version r + 1 of a value from version r. A worker's push of a key counts
/// towards the round of the version that it pulled last, or towards the round after its last push, whichever is later.
/// Once K gradients have arrived, the server applies their mean, summed in the order of the workers' ranks; if K is all
/// workers, the bits do not depend on the order of arrival. A pull waits for the round of this worker's last push.
/// Backup workers: Chen et al., "Revisiting distributed synchronous SGD", 2016.
///
/// **Asynchronous.** A push is applied on arrival; a pull gets the newest value. `max_staleness` = S bounds the
/// difference between workers (Ho et al., "More effective distributed ML via a stale synchronous parallel parameter
/// server", NIPS 2013): if a worker pulls before each push, its gradients are at most (workers - 1) · (2 S + 1) updates
/// old.
///
/// A push is done when its servers have received it (asynchronous: applied it), and at most `ahead_bytes` of its
/// worker's gradients wait there for later rounds. A pull is done when `out` has the values. Operations in flight
/// progress in any call of this store; between calls, messages progress as those of the World. Used by one thread.
///
/// No call hangs. All workers get CommunicationError, and `serve` throws, if a worker leaves without `close`, an update
/// throws, a server cannot create a part, or all workers wait for each other at one server (because not all of them
/// push the same keys, with `max_staleness` or beyond `ahead_bytes`). Dead or stopped ranks are detected as in any
/// collective (docs/no-silent-hang.md).
class KeyValueStore {
 public:
  /// Collective. Throws InputError, on all ranks, if options are invalid or differ between ranks.
  explicit KeyValueStore(const Communicator& communicator, const KeyValueOptions& options = {});
  KeyValueStore(KeyValueStore&&) noexcept;
  KeyValueStore& operator=(KeyValueStore&&) noexcept;
  /// On a worker without `close`: operations of other workers fail. Waits at most two seconds.
  ~KeyValueStore();

  [[nodiscard]] const Roles& roles() const noexcept;
  [[nodiscard]] int rank() const noexcept;
  [[nodiscard]] bool is_server() const noexcept { return roles().is_server(rank()); }
  [[nodiscard]] KeyValueStatistics statistics() const;

  /// Calls `serve` on a server; `work`, then `close` on a worker. If `work` throws, the other workers' errors include
  /// the reason. The local variables of `work` are then destroyed, while its operations may still be in flight: see
  /// start_push.
  void run(const std::function<void()>& work);

  // For servers, before `serve`; on a worker only the arguments are checked. Without an updater, a pushed gradient
  // replaces the value.

  /// Updates by one of Ronda's optimizers, whose states are stored on the servers. Each update of a part uses the rate
  /// of the next step of `schedule`. Throws InputError for an optimizer that needs whole parameters (LARS, LAMB, Muon).
  void set_updater(const OptimizerOptions& optimizer, const Schedule& schedule);
  void set_updater(KeyValueUpdate update);

  /// For servers: answers the workers until all have closed. Rethrows the exception of an update. Throws
  /// CommunicationError if a worker left without `close` or a rank was lost.
  void serve();

  // For workers. Incorrect use throws LogicError: an unknown key, another size, a call on a server or after `close`.

  struct Value {
    std::string key;
    std::span<const float> values;
  };
  /// Collective over the workers: all give the same keys and sizes (any size, including 0); the first worker's values
  /// are stored. The more keys are in one call, the more evenly they are distributed over the servers. Fails if a
  /// worker has left before. If a worker has closed, waits for it until the communication timeout, as any collective
  /// would.
  void init(std::span<const Value> values);
  void init(std::string_view key, std::span<const float> values);

  /// Waits only while more than `ahead_bytes` of earlier pushes are not done. `gradient` must not be changed or freed
  /// until the push is done or has thrown, or the store is destroyed. If code between the start and the wait can throw,
  /// declare its memory before the store, not in the `work` of `run`.
  [[nodiscard]] KeyValueHandle start_push(std::string_view key, std::span<const float> gradient);
  void push(std::string_view key, std::span<const float> gradient) { start_push(key, gradient).wait(); }
  /// `out` must not be accessed or freed until the pull is done or has thrown, or the store is destroyed; see
  /// start_push.
  [[nodiscard]] KeyValueHandle start_pull(std::string_view key, std::span<float> out);
  void pull(std::string_view key, std::span<float> out) { start_pull(key, out).wait(); }

  /// Number of updates in the value that this worker has pulled last; 0 before. For a value of several parts, the
  /// smallest of its parts. Can serve as a global step, to stop after a number of updates.
  [[nodiscard]] std::uint64_t version(std::string_view key) const;

  /// Lets operations in flight progress; does not wait.
  void poll();
  /// Waits until all workers that have not closed have called it.
  void barrier();
  /// Waits for operations in flight, then reports to the servers that this worker has finished. Throws if an operation
  /// that was not waited for has failed.
  void close();

 private:
  void require_updatable() const;
  [[nodiscard]] KeyValueWorker& worker(const char* call) const;

  Communicator ranks_;
  Roles roles_;
  std::unique_ptr<KeyValueServer> server_;
  std::unique_ptr<KeyValueWorker> worker_;
};

}  // namespace ronda
