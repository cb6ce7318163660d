#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <ronda/runtime/key_value/detail/channel.hpp>
#include <ronda/runtime/key_value/detail/push_queue.hpp>
#include <ronda/runtime/strategy/parameter_server/own_pace.hpp>
#include <ronda/runtime/strategy/exchange/step_agreements.hpp>

namespace ronda {

/// A server's part of OwnPace. It waits only for the workers whose gradients a step takes: an answer is sent from a
/// copy, while later steps continue. The leader's PushQueue decides a step; the queues of all servers advance by its
/// fates, and decide alike which workers are answered.
class OwnPaceServer final : public OwnPace {
 public:
  /// Collective, over all ranks, with OwnPaceWorker's.
  OwnPaceServer(const Communicator& communicator, const KeyValueOptions& how, const std::vector<GradientSlot>& slots,
                const Replica& replica, const FusionOptions& options);

  void visit(StateVisitor& visitor) override;
  void begin() override { ++runs_; }
  void mark_ready(ParameterId /*id*/, Stream& /*stream*/) override {}
  void reduce(Sums wanted, Stream& stream) override;
  void update(FunctionRef<void(const ArenaRange&)> apply, Stream& /*stream*/) override { apply(updated_); }
  void publish(UpdateOutcome* outcome, Stream& stream) override;
  void set_updates(std::uint64_t updates) override;

 private:
  [[nodiscard]] std::size_t memory() const noexcept override;
  /// One worker.
  struct Worker {
    Worker(const Communicator& communicator, int its_rank, int its_number)
        : rank(its_rank), number(its_number), answers(communicator, rank, answer_label) {}
    int rank;
    int number;  ///< of the workers, in the order of ranks
    Channel answers;
    Buffer gradients = {};  ///< its, of this share, as they were sent
    Push push = {};
    std::unique_ptr<MessageWindow> receives = {};  ///< of pieces, then of the push
    bool expected = false;                         ///< its push may come, or has
    bool waits = false;                            ///< for its answer
    std::uint64_t heard = 0;                       ///< steps whose records it has
    std::uint64_t taken = 0;                       ///< the step that took its last gradient
    bool dropped = false;                          ///< its last gradient came too late
    StepFlags flags = {};                          ///< as it raised them last
  };
  [[nodiscard]] bool leads() const noexcept { return communicator_.rank() == roles_.rank_of_server(0); }
  void plan_worker(Worker& worker);
  [[nodiscard]] static bool move_on(Worker& worker, Stream& stream);
  template <class Chosen>
  void wait_for(const Chosen& chosen, Stream& stream);
  [[nodiscard]] Fate fate_of(const Worker& worker) const { return fates_[static_cast<std::size_t>(worker.number)]; }
  void pick(Stream& stream);
  void tell_servers(Stream& stream);
  void add_gradients(Sums wanted, Stream& stream);
  [[nodiscard]] bool settles(const UpdateOutcome& outcome) const;
  void note_fates();
  [[nodiscard]] bool has_samples(const Worker& worker) const;
  void wait_for_all(Stream& stream);
  void answer_all(bool settling, Stream& stream);
  void answer(Worker& worker, Stream& stream);
  void forget_records();
  /// Since the last one that settled.
  [[nodiscard]] std::uint64_t steps() const noexcept { return queue_.version(); }
  void begin_anew();

  ArrivingPieces arriving_;  ///< of each worker
  GradientPool pool_;
  PublishedValues published_{pool_};
  std::vector<std::unique_ptr<Worker>> workers_;
  PushQueue queue_;                              ///< its versions are steps; has pushes on the leader only
  std::vector<Fate> fates_;                      ///< in this step, by worker
  std::vector<double> ballot_;                   ///< the step's sums, then the fates
  std::unique_ptr<Collective> told_, all_sums_;  ///< among servers; null where there is one
  std::unique_ptr<SpoiledAnywhere> spoiled_;     ///< likewise
  ArenaRange updated_;
  std::vector<const std::byte*> taken_;  ///< pushes that the step takes
  std::vector<const float*> more_gradients_;
  std::int64_t runs_ = 0;        ///< steps so far: see visit
  std::uint64_t end_ = 0;        ///< asynchronous: of the epoch, as the last push said
  std::uint64_t forgotten_ = 0;  ///< steps since the last one that settled of which all workers have heard
  std::vector<Record> records_;  ///< of the later ones
};

}  // namespace ronda
