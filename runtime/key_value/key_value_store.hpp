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
  int servers = 1;                     ///< the last ranks of the group
  std::vector<int> server_ranks = {};  ///< given: these ranks instead, anywhere in the group
  /// Each pushed gradient is applied as it comes. Else gradients are applied in rounds, by their mean.
  bool asynchronous = false;
  /// Gradients in a round, of as many workers; 0: of all. With fewer than all, the slowest workers are *backups*: a
  /// gradient that comes after its round is dropped, and counted. Not with `asynchronous`.
  int replicas_to_aggregate = 0;
  /// With `asynchronous`: a worker that has pushed a key more than so many times more often than the slowest one waits,
  /// in its next push and pull of that key. Nothing: no worker waits.
  std::optional<std::uint64_t> max_staleness = {};
  /// Values of more bytes are cut into parts of at most so many; a multiple of 64.
  std::size_t part_bytes = std::size_t{4} << 20;
  /// Bytes of a worker's gradients that each server keeps for later rounds, and that a worker sends without an answer;
  /// a push beyond it waits. A server holds at most twice as many bytes per worker, and one value.
  std::size_t ahead_bytes = std::size_t{256} << 20;
};

/// Throws InputError as Roles does.
[[nodiscard]] Roles roles_of(const KeyValueOptions& options, int ranks);
/// Throws InputError, which names the field, where an option cannot be.
void require_sense(const KeyValueOptions& options, int ranks);
/// Where it cannot be for any number of ranks, which need not be known yet.
void require_sense(const KeyValueOptions& options);

/// A part of a value on its server.
struct KeyPart {
  std::string key;
  std::size_t begin = 0;  ///< its first element in the value
  std::size_t count = 0;  ///< elements of the part
  std::size_t total = 0;  ///< elements of the value
};

/// An update rule of one's own. Called on the server, for one part at a time; may keep what it likes between calls.
/// @param update    how often this part was updated before
/// @param values    to change
/// @param gradient  in a round the mean of the workers'; as long as `values`
using KeyValueUpdate = std::function<void(const KeyPart& part, std::uint64_t update, std::span<float> values,
                                          std::span<const float> gradient)>;

/// Counted on this rank. A value of several parts counts once for each.
struct KeyValueStatistics {
  std::uint64_t updates = 0;  ///< on a server: updates applied
  std::uint64_t dropped = 0;  ///< gradients that came after their round: on a server all, on a worker its own
  std::uint64_t waited = 0;   ///< on a server: pushes and pulls that waited for a slower worker (`max_staleness`)
  /// On a server, asynchronous: element s counts the gradients that were s updates old when they were applied: others'
  /// updates, and one's own, since the worker pulled. The last element, 1023, counts older ones too.
  std::vector<std::uint64_t> staleness = {};
  std::uint64_t sent_bytes = 0, received_bytes = 0;  ///< of values and gradients
};

/// A push or a pull under way. A small value; copies refer to the same. Not for use after its store is gone.
class KeyValueHandle {
 public:
  KeyValueHandle() = default;
  KeyValueHandle(KeyValueWorker& worker, std::shared_ptr<const KeyValueOperation> operation)
      : worker_(&worker), operation_(std::move(operation)) {}
  /// Moves the store on. Throws what `wait` throws.
  [[nodiscard]] bool done() const;
  /// Throws CommunicationError where a server failed, another worker went away, or ranks could not be reached.
  void wait() const;

 private:
  KeyValueWorker* worker_ = nullptr;
  std::shared_ptr<const KeyValueOperation> operation_;
};

/// Named float32 values that servers keep and update, and that workers read (*pull*) and send gradients of (*push*): a
/// parameter server (Li et al., "Scaling distributed machine learning with the parameter server", OSDI 2014; MXNet's
/// KVStore). Values are spread over the servers by bytes, large ones in parts.
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
/// **Rounds** (synchronous). A worker's push of a key counts towards the round of the version that it pulled last, or
/// the round after its last push, whichever is later. With K gradients the server applies their mean, summed in the
/// order of the workers' ranks: where K is all workers, bits do not depend on what comes first. A pull waits for the
/// round that this worker has pushed to. Backup workers: Chen et al., "Revisiting distributed synchronous SGD", 2016.
///
/// **Asynchronous.** A push is applied as it comes; a pull has the newest value. `max_staleness` = S bounds how far
/// workers run apart (Ho et al., "More effective distributed ML via a stale synchronous parallel parameter server",
/// NIPS 2013): then a gradient of a worker that pulls before each push is at most (workers - 1) · (2 S + 1) updates
/// old.
///
/// A push is done when its servers have it (asynchronous: have applied it), and no more than `ahead_bytes` of its
/// worker wait there for later rounds; a pull when `out` has the values. Operations in flight progress in any call of
/// this store; between calls, messages progress as the World's do. Used by one thread.
///
/// No call hangs: a worker that leaves without `close`, an update that throws, a part that its server cannot make, and
/// workers that all wait for each other at one server (by keys that not all of them push, with `max_staleness` or
/// beyond `ahead_bytes`) give CommunicationError on all workers and an error from `serve`; a rank that is dead or
/// stopped is found as in any collective (docs/no-silent-hang.md).
class KeyValueStore {
 public:
  /// Collective. Throws InputError, on all ranks, for options that cannot be or that differ.
  explicit KeyValueStore(const Communicator& communicator, const KeyValueOptions& options = {});
  KeyValueStore(KeyValueStore&&) noexcept;
  KeyValueStore& operator=(KeyValueStore&&) noexcept;
  /// On a worker without `close`: the operations that the others wait for fail. Waits at most two seconds.
  ~KeyValueStore();

  [[nodiscard]] const Roles& roles() const noexcept;
  [[nodiscard]] int rank() const noexcept;
  [[nodiscard]] bool is_server() const noexcept { return roles().is_server(rank()); }
  [[nodiscard]] KeyValueStatistics statistics() const;

  /// On a server: `serve`. On a worker: `work`, then `close`; if `work` throws, the others receive the reason. By then
  /// the variables of `work` are gone, while its operations may still be in flight: see start_push.
  void run(const std::function<void()>& work);

  // The server's, before `serve`; on a worker only the arguments are checked. Without an updater a pushed gradient
  // replaces the value.

  /// By one of Ronda's optimizers; its states lie on the servers. Each update of a part takes the rate of the next step
  /// of `schedule`. Throws InputError for an optimizer that needs whole parameters (LARS, LAMB, Muon).
  void set_updater(const OptimizerOptions& optimizer, const Schedule& schedule);
  void set_updater(KeyValueUpdate update);

  /// The server's: answers the workers until all have closed. Throws what an update threw; CommunicationError where a
  /// worker left without `close`, or a rank was lost.
  void serve();

  // The workers'. A wrong use throws LogicError: an unknown key, another size, a call on a server or after `close`.

  struct Value {
    std::string key;
    std::span<const float> values;
  };
  /// Collective over the workers: all give the same keys and sizes, any, also 0; the values of the first worker count.
  /// The more keys in one call, the more evenly they are spread. A worker that left before fails it; one that has
  /// closed is missed as in any collective.
  void init(std::span<const Value> values);
  void init(std::string_view key, std::span<const float> values);

  /// Waits only while more than `ahead_bytes` of earlier pushes are not done.
  /// `gradient` is not to be written, nor freed, until the push is done, or has thrown, or the store is gone. Where
  /// something may throw before the wait, its memory is declared before the store, not in the `work` of `run`.
  [[nodiscard]] KeyValueHandle start_push(std::string_view key, std::span<const float> gradient);
  void push(std::string_view key, std::span<const float> gradient) { start_push(key, gradient).wait(); }
  /// `out` is not to be touched, nor freed, until the pull is done, or has thrown, or the store is gone: as above.
  [[nodiscard]] KeyValueHandle start_pull(std::string_view key, std::span<float> out);
  void pull(std::string_view key, std::span<float> out) { start_pull(key, out).wait(); }

  /// Updates of the value that this worker has pulled last, 0 before; of a value of several parts those of the part
  /// that has the fewest. For stopping after so many: a global step.
  [[nodiscard]] std::uint64_t version(std::string_view key) const;

  /// Moves on what is under way, where it can; does not wait.
  void poll();
  /// Returns when all workers that have not closed have called it.
  void barrier();
  /// Waits for what is under way, and says to the servers that this worker needs nothing more. Throws where something
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
