#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/collectives/nccl/lanes.hpp>
#include <ronda/collectives/nccl/nccl_library.hpp>
#include <ronda/collectives/watch/recorder.hpp>
#include <ronda/collectives/watch/unseen_work.hpp>
#include <ronda/collectives/watch/watchdog.hpp>
#include <ronda/core/buffer.hpp>
#include <ronda/core/stream.hpp>
#include <ronda/core/clock.hpp>
#include <ronda/core/message.hpp>

namespace ronda::nccl {

/// The ranks of a group as NCCL connects them, each with a GPU of its own, from the first call to the last.
///
///     connecting → ready → over
///              ↘ over
///
/// Connecting does not block: the ranks ask NCCL how far it is and tell each other by MPI, in rounds, so that one that
/// fails, or does not come within the deadline, ends it for all at the same place and by name. Once ready, errors that
/// NCCL finds while kernels run come up where the watchdog looks, which ends the job; where nobody watches, at the next
/// start. Over is final: everything throws why.
///
/// Nothing waits for other ranks but the constructor and `allocate`, which are collective, and the first collective of
/// a kind, for which NCCL connects them. The destructor does not: it aborts, which frees everything. Another rank may
/// still be at the last collective then, and read memory of this one: ranks that end in good order meet before.
class Clique final : public UnseenWork {
 public:
  /// Everybody's text, by rank. Collective.
  using Gather = std::function<std::vector<std::string>(std::string_view)>;
  struct Place {
    int rank = 0;
    std::vector<std::string> names;  ///< by rank, for messages: `rank 2 on node17`
    Gather gather;
    double deadline = 60;      ///< seconds for each call that waits for others; 0: none
    Ledger* ledger = nullptr;  ///< where runs are written down; outlives this object. Null: nowhere
    std::shared_ptr<Watchdog> watchdog = nullptr;
    const Clock& clock = steady_clock();  ///< outlives this object
  };

  /// Collective. Throws CommunicationError, the same on all ranks.
  Clique(std::shared_ptr<Library> library, std::shared_ptr<DeviceLanes> lanes, Place place);
  Clique(const Clique&) = delete;
  ~Clique();

  [[nodiscard]] int rank() const noexcept { return place_.rank; }
  [[nodiscard]] int size() const noexcept { return static_cast<int>(place_.names.size()); }
  [[nodiscard]] Stream& stream() noexcept { return *lanes_->collectives; }

  /// Zeroed memory that NCCL knows beforehand. It may go before this object does, or after; NCCL forgets it, and the
  /// GPU has it back, at the first allocation after it has gone on all ranks. Collective. `note` says where NCCL would
  /// not have it, which only costs speed. Throws as the constructor does; ResourceError.
  Buffer allocate(std::size_t bytes, Message& note);

  /// Queues what `calls` asks of the library on `stream`, as one. Not collective by itself, but all ranks queue the
  /// same in the same order. Throws CommunicationError.
  /// @param calls  is given the library, the communicator, and a function that takes each answer
  template <class Calls>
  void queue(Calls&& calls) {
    const std::unique_lock turn = begin_queueing();
    calls(*library_, comm_, [this](const Answer& answer) { check(answer); });
    end_queueing();
  }

  /// A run of a collective begins; what is returned goes to `watch_run`.
  [[nodiscard]] std::uint64_t begin_run(const Description& description) noexcept;
  /// It is queued between two points of a stream: from the first to the second it waits for others. Where very many are
  /// in flight, the newest go unwatched until one of the oldest has ended.
  void watch_run(std::uint64_t record, const Event& began, const Event& ended);

  /// Whoever has waited for a stream asks whether what he waited for is whole: throws CommunicationError where it is
  /// over. Notes which runs have ended.
  void require_whole();

  Failure look() noexcept override;
  void give_up(const std::string& reason) noexcept override;

 private:
  struct Run {
    std::uint64_t record = 0;
    Event began, ended;
  };
  /// Memory from the library, freed when nobody refers to it.
  class Memory;

  /// How a call that all ranks made went.
  struct Outcome {
    Message error;      ///< by name, the same on all ranks; empty: it succeeded everywhere
    bool late = false;  ///< the deadline passed, and it goes on somewhere
  };

  [[nodiscard]] UniqueId agree_on_id();
  void connect();
  /// Waits until `call`, which every rank has made, is over on all. Collective.
  [[nodiscard]] Outcome settle(std::string_view call, Answer answer);
  [[nodiscard]] Answer wait_for_own(Answer answer, double seconds);
  void check(const Answer& answer);
  [[noreturn]] void fail(const Message& reason);
  void disconnect(const Message& reason) noexcept;
  void disconnect_beside_recordings(const Message& reason) noexcept;
  void forget_unused();
  [[nodiscard]] std::unique_lock<std::mutex> begin_queueing();
  void end_queueing();
  void await_readiness();
  [[nodiscard]] Message blame(const Answer& answer) const;
  void retire_runs();
  [[nodiscard]] std::string look_at_runs();

  std::shared_ptr<Library> library_;
  std::shared_ptr<DeviceLanes> lanes_;
  Place place_;

  std::mutex turn_;      ///< guards `comm_`, `reason_` and `registered_`
  Comm comm_ = nullptr;  ///< NCCL writes it until the call that connects is over, or aborted
  Message reason_;       ///< why it is over; empty: it is not
  /// Memory that NCCL was told of, in the order in which all ranks did.
  struct Registered {
    std::shared_ptr<Memory> memory;
    Window window = nullptr;  ///< NCCL writes it when the call that opens it is over
  };
  std::list<Registered> registered_;
  std::future<void> aborting_;  ///< over before this object: recordings, which hold NCCL up, hold this object too

  std::mutex runs_door_;  ///< guards what follows; never held for long
  std::array<Run, 256> runs_{};
  std::size_t first_run_ = 0, run_count_ = 0;
};

}  // namespace ronda::nccl
