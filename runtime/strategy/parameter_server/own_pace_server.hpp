#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <ronda/runtime/strategy/parameter_server/own_pace.hpp>
#include <ronda/runtime/strategy/exchange/spoiled_anywhere.hpp>

namespace ronda {

/// A server's part of OwnPace. It waits for nobody but those whose gradients a step takes: an answer is sent from a
/// copy, while later steps go on.
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
  /// What becomes of a worker's push in a step.
  enum class Fate : std::uint8_t { none, taken, late, idle };
  /// One worker.
  struct Worker {
    int rank = 0;
    std::size_t number = 0;  ///< of the workers, in the order of ranks
    Buffer gradients = {};   ///< its, of this share, as they were sent
    Buffer values = {};      ///< as they are sent to it; none: they have the place of its gradients
    Push push = {};
    std::unique_ptr<MessageWindow> receives = {};  ///< of pieces, then of the push
    bool expected = false;                         ///< its push may come, or has
    bool queued = false;      ///< the leader's: its push has come, and stands in the order of pushes
    bool waits = false;       ///< for its answer
    bool idle = false;        ///< it has nothing to compute until the next step that settles
    std::uint64_t heard = 0;  ///< steps whose records it has
    std::uint64_t taken = 0;  ///< the step that took its last gradient
    std::uint64_t pushes = 0;
    bool dropped = false;  ///< its last gradient came too late
    StepFlags flags = {};  ///< as it raised them last
    Fate fate = Fate::none;
    Answer answer = {};
    std::vector<Record> news = {};  ///< as they are sent to it
    std::unique_ptr<Collective> send_answer = {}, send_news = {}, send_values = {};
    std::vector<Event> sending = {};  ///< what of the answer is not known to be sent

    [[nodiscard]] float* values_to_send() const noexcept {
      return reinterpret_cast<float*>(values.bytes() > 0 ? values.data() : gradients.data());
    }
  };
  [[nodiscard]] bool leads() const noexcept { return communicator_.rank() == roles_.rank_of_server(0); }
  void plan_worker(Worker& worker);
  [[nodiscard]] static bool is_answered(Worker& worker);
  [[nodiscard]] static bool move_on(Worker& worker, Stream& stream);
  template <class Chosen>
  void wait_for(const Chosen& chosen, Stream& stream);
  void pick(Stream& stream);
  [[nodiscard]] bool decide_fates();
  void tell_servers(Stream& stream);
  void add_gradients(Sums wanted, Stream& stream);
  void add_up(Stream& stream);
  [[nodiscard]] bool settles(const UpdateOutcome& outcome) const;
  void note_fates();
  void wait_for_all(Stream& stream);
  [[nodiscard]] std::uint64_t fewest_pushes() const;
  void answer_all(bool settling, Stream& stream);
  void answer(Worker& worker, Stream& stream);
  void forget_records();
  [[nodiscard]] std::uint64_t steps() const noexcept { return forgotten_ + records_.size(); }
  void begin_anew();

  ArrivingPieces arriving_;  ///< of each worker
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::size_t> order_;  ///< numbers of workers whose push has come, in this order; the leader's
  std::vector<double> ballot_;      ///< the step's sums, then each worker's fate
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
