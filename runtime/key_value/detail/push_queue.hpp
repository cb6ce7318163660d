#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include <ronda/runtime/key_value/detail/answers.hpp>
#include <ronda/runtime/key_value/detail/gradient_pool.hpp>
#include <ronda/runtime/key_value/key_value_store.hpp>

namespace ronda {

/// A worker's push, as it waits on a server.
struct PushedGradient {
  Asked asked;
  std::uint64_t version = 0;  ///< of the values that the worker has pulled
  GradientPool::Piece elements = {};
  bool counts = true;  ///< as one of the K; false: a gradient of no samples
  bool idle = false;   ///< without a gradient: the worker has no samples until the queue restarts
};

/// What the next update does with a worker's earliest push.
enum class Fate : std::uint8_t {
  waits,  ///< stays for a later update; or the worker has no push
  taken,  ///< applies its gradient
  late,   ///< drops it: its round is over
  idle,   ///< drops it: there is no gradient
};

/// Decides which pushes an update takes, which are dropped, and which workers wait: the rules of KeyValueStore and of
/// OwnPace. A state machine without messages: the functions that change it are its events; what it decides depends on
/// these only. `decide` changes nothing, so that a server can send the fates to others, which `advance` by them too.
///
/// In rounds update r takes the first K pushes of round r. A push belongs to the round of the version that its worker
/// has pulled, or to the one after its last push, whichever is later. Asynchronous, an update takes the first push of
/// a worker that is not ahead: its gradients taken exceed those of the slowest by at most `max_staleness`.
class PushQueue {
 public:
  PushQueue(const KeyValueOptions& options, std::size_t workers);

  // ---- events
  /// Returns the push's round. Asynchronous: 0.
  std::uint64_t push(PushedGradient push);
  /// Drops the worker's earliest push.
  void drop(int worker);
  /// The worker pushes no more, until a restart: no other worker waits for it.
  void leave(int worker);
  /// The next update is made.
  /// @param fates  by worker, from `decide` here or on another server
  void advance(const std::vector<Fate>& fates);
  /// All workers continue from the same values: version 0.
  void restart();

  // ---- decisions
  /// Decides the next update.
  /// @return  false: it has not all its gradients yet. It has K, or the pushes of all workers
  [[nodiscard]] bool decide(std::vector<Fate>& fates) const;
  /// The pushes that `fates` takes, in the order of workers.
  [[nodiscard]] std::vector<PushedGradient*> taken(const std::vector<Fate>& fates);
  [[nodiscard]] bool is_ahead(int worker) const;
  /// True if the worker can have the values now: it is open, not ahead, and the round of its last push is over.
  [[nodiscard]] bool may_pull(int worker) const;
  /// True if the worker can still push to the present round.
  [[nodiscard]] bool is_missing(int worker) const;
  /// Number of gradients that the present round has or can still get.
  [[nodiscard]] std::size_t possible() const;

  [[nodiscard]] std::uint64_t version() const noexcept { return version_; }  ///< number of updates
  [[nodiscard]] std::size_t wanted() const noexcept { return wanted_; }      ///< K
  /// The worker's gradients taken so far.
  [[nodiscard]] std::uint64_t taken_of(int worker) const { return of(worker).taken; }
  [[nodiscard]] int slowest() const;
  [[nodiscard]] bool has_push(int worker) const { return of(worker).pushes > 0; }
  /// By round, then in the order of arrival.
  using Pushes = std::multimap<std::uint64_t, PushedGradient>;
  [[nodiscard]] const Pushes& pushes() const noexcept { return pushes_; }

 private:
  struct Worker {
    std::uint64_t next_round = 0;  ///< earliest round of its next push
    std::uint64_t taken = 0;
    std::size_t pushes = 0;  ///< in the queue
    bool open = true;        ///< it has not left
  };
  [[nodiscard]] const Worker& of(int worker) const { return workers_[static_cast<std::size_t>(worker)]; }
  [[nodiscard]] Worker& of(int worker) { return workers_[static_cast<std::size_t>(worker)]; }
  [[nodiscard]] std::uint64_t round() const noexcept { return asynchronous_ ? 0 : version_; }
  void remove(std::vector<Fate> fates);
  void find_fewest();

  bool asynchronous_;
  std::size_t wanted_;
  std::optional<std::uint64_t> max_staleness_;
  std::uint64_t version_ = 0;
  std::vector<Worker> workers_;
  Pushes pushes_;
  std::size_t pushing_ = 0;   ///< number of workers with a push
  std::uint64_t fewest_ = 0;  ///< smallest `taken` of open workers
};

/// Counts a gradient that was `age` updates old when applied.
/// @param most  length of the histogram at most: its last element also counts older ones
void count_age(std::vector<std::uint64_t>& ages, std::uint64_t age, std::size_t most);

}  // namespace ronda
