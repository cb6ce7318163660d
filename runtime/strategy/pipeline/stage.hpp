#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/function_ref.hpp>
#include <ronda/data/batch.hpp>
#include <ronda/layers/program.hpp>
#include <ronda/runtime/strategy/replica.hpp>
#include <ronda/runtime/strategy/step_clock.hpp>

namespace ronda {

/// One rank's stage of a pipeline: it computes its part of the model on one micro-batch after another, takes what the
/// stage before sends, and sends on.
///
/// Several micro-batches are in flight, forward done and backward still to come. Each has a *slot*: a program of its
/// own over the stage's one set of parameters, with its activations. What is received has one buffer more, so that the
/// next micro-batch arrives while this one is computed. Sends are begun and not waited for until their slot is used
/// again.
class Stage {
 public:
  struct Parts {
    Communicator pipeline;      ///< the ranks of one pipeline, by stage
    Replica& replica;           ///< bound; its program is the first slot's. Outlives this object
    std::vector<Program> more;  ///< those of the other slots
    std::span<const Field> fields;
    std::size_t rows = 0;  ///< of a micro-batch
  };
  /// Micro-batches of a stage that are in flight at once.
  [[nodiscard]] static std::size_t slots(std::size_t stage, std::size_t stages, std::size_t micro_batches) noexcept;
  /// Bytes that a stage takes beside its replica: other slots' activations, what it receives, and copies of batches.
  [[nodiscard]] static std::size_t bytes(const Program& program, std::span<const Field> fields, std::size_t rows,
                                         std::size_t slots);

  /// Takes the memory, and plans the messages. Throws ResourceError. Not collective.
  explicit Stage(Parts parts);
  Stage(const Stage&) = delete;  // its messages know its memory

  [[nodiscard]] bool first() const noexcept { return index_ == 0; }
  [[nodiscard]] bool last() const noexcept { return index_ + 1 == stages_; }
  /// Micro-batches whose forward is done before the first backward: see PipelineStrategy.
  [[nodiscard]] std::size_t warmup() const noexcept { return slots_.size() - 1; }

  /// So many micro-batches come, one after another. Between `begin`s every slot's backward is done, or, where `trains`
  /// is false, there is none.
  void begin(std::size_t micro_batches, bool trains);
  /// Forward of the next micro-batch, and its loss in the last stage. Returns its outputs, which are the model's in the
  /// last stage.
  /// @param batch  may change when this returns, where `warmup` is not 0 (its copy is kept); else after its backward
  /// @param pass   makes the pass over a batch, which has the same samples and stays until backward
  const Tensor& forward(const Batch& batch, FunctionRef<Pass(const Batch&)> pass, StepClock& clock);
  /// Backward of the oldest micro-batch whose backward is to come.
  void backward(const OnReady& on_ready, StepClock& clock);
  /// All that this rank has sent has been taken. Before the memory is another's.
  void settle();

  [[nodiscard]] double busy_seconds() const noexcept { return busy_; }      ///< forward and backward of steps
  [[nodiscard]] double waited_seconds() const noexcept { return waited_; }  ///< for the other stages, in steps

 private:
  struct Slot {
    Program* program = nullptr;
    Buffer activations;            ///< empty: the replica's
    std::vector<Parameter> views;  ///< of the replica's, as the program was bound to them
    std::optional<Batch> held;     ///< a copy of the batch, where others come before backward
    std::optional<Pass> pass;      ///< of the micro-batch in flight
    const Batch* batch = nullptr;
    std::unique_ptr<Collective> send_output, receive_gradient, send_gradient;
    Event output_sent, gradient_received, gradient_sent;
  };
  void bind(Slot& slot);
  void plan_messages(Slot& slot);
  void await(Event& event, StepClock& clock);
  void receive_ahead();
  void compute_done(double StepTimes::*phase, StepClock& clock);

  Communicator pipeline_;
  Replica& replica_;
  std::vector<Program> more_;
  std::span<const Field> fields_;
  std::size_t rows_, index_, stages_;
  std::optional<std::size_t> received_input_;  ///< which of the program's inputs is received; nothing: the first stage
  struct Received {
    Buffer memory;
    Tensor tensor;
    std::unique_ptr<Collective> receive;
    Event arrived;
  };
  std::vector<Received> received_;
  std::vector<Slot> slots_;
  std::vector<Tensor> inputs_;  ///< of a pass
  std::size_t coming_ = 0, forwards_ = 0, backwards_ = 0, receives_ = 0;
  bool trains_ = true;
  double busy_ = 0, waited_ = 0, mark_ = 0;
};

}  // namespace ronda
