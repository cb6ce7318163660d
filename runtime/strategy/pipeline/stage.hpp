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
#include <ronda/runtime/strategy/replica/replica.hpp>
#include <ronda/runtime/strategy/replica/step_clock.hpp>

namespace ronda {

/// One rank's stage of a pipeline: it computes its part of the model on one micro-batch after another, takes what the
/// stage before sends, and sends on.
///
/// Several micro-batches are in flight, forward done and not all of backward. Each has a *slot*: a program of its own
/// over the stage's one set of parameters, with its activations. What is received has one buffer more, so that the next
/// micro-batch arrives while this one is computed. Sends are begun and not waited for until their slot is used again;
/// they go on between operations.
///
/// Backward has two halves, so that the stage before does not wait for the gradients of parameters: the first ends with
/// the gradients of what was received, which are sent. The second follows v micro-batches later, with v stages before
/// this one: at a time at which the stage would otherwise wait. See PipelineStrategy for the schedule.
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
  [[nodiscard]] static std::size_t slots(std::size_t stages, std::size_t micro_batches) noexcept;
  /// Bytes that a stage takes beside its replica: other slots' activations, what it receives, and copies of batches.
  [[nodiscard]] static std::size_t bytes(const Program& program, std::span<const Field> fields, std::size_t rows,
                                         std::size_t slots);

  /// Takes the memory, and plans the messages. Throws ResourceError. Not collective.
  explicit Stage(Parts parts);
  Stage(const Stage&) = delete;  // its messages know its memory

  [[nodiscard]] bool first() const noexcept { return index_ == 0; }
  [[nodiscard]] bool last() const noexcept { return index_ + 1 == stages_; }

  /// Whether a first half of backward comes next, rather than a forward: the stages behind have enough to do.
  [[nodiscard]] bool inputs_are_due() const noexcept;
  /// Whether a second half comes next.
  [[nodiscard]] bool parameters_are_due() const noexcept;
  /// Micro-batches whose first and second halves of backward are done.
  [[nodiscard]] std::size_t inputs_done() const noexcept { return inputs_done_; }
  [[nodiscard]] std::size_t parameters_done() const noexcept { return parameters_done_; }

  /// So many micro-batches come, one after another. Between `begin`s every slot's backward is done, or, where `trains`
  /// is false, there is none.
  void begin(std::size_t micro_batches, bool trains);
  /// Forward of the next micro-batch, and its loss in the last stage. Returns its outputs, which are the model's in the
  /// last stage.
  /// @param batch  may change when this returns, where there are several slots (a copy is kept); else after its
  /// backward
  /// @param pass   makes the pass over a batch, which has the same samples and stays until backward
  const Tensor& forward(const Batch& batch, FunctionRef<Pass(const Batch&)> pass, StepClock& clock);
  /// The next half of backward, of the oldest micro-batch of which it is to come.
  void backward_inputs(const OnReady& on_ready, StepClock& clock);
  void backward_parameters(const OnReady& on_ready, StepClock& clock);
  /// Moves messages on while operations are computed: see Pass::after_operation.
  void move_on();
  /// All that this rank has sent has been taken. Before the memory is another's.
  void settle();

  [[nodiscard]] double busy_seconds() const noexcept { return busy_; }      ///< forward and backward of steps
  [[nodiscard]] double waited_seconds() const noexcept { return waited_; }  ///< for the other stages, in steps

 private:
  struct Message {
    std::unique_ptr<Collective> planned;
    Event done;
  };
  struct Slot {
    Program* program = nullptr;
    Buffer activations;            ///< empty: the replica's
    std::vector<Parameter> views;  ///< of the replica's, as the program was bound to them
    std::optional<Batch> held;     ///< a copy of the batch, where others come before backward
    std::optional<Pass> pass;      ///< of the micro-batch in flight
    const Batch* batch = nullptr;
    std::vector<Message> send_outputs, receive_gradients, send_gradients;
  };
  void bind(Slot& slot);
  void plan_messages(Slot& slot);
  void plan_received();
  static void start(std::vector<Message>& messages);
  static bool are_done(const std::vector<Message>& messages);
  void await(std::vector<Message>& messages, StepClock& clock);
  void receive_ahead();
  void compute_done(double StepTimes::*phase, StepClock& clock);

  Communicator pipeline_;
  Replica& replica_;
  std::vector<Program> more_;
  std::span<const Field> fields_;
  std::size_t rows_, index_, stages_;
  std::vector<std::size_t> received_inputs_;  ///< which of the program's inputs are received; none: the first stage
  struct Received {
    std::vector<Buffer> memory;
    std::vector<Tensor> tensors;
    std::vector<Message> receives;
  };
  std::vector<Received> received_;
  std::vector<Slot> slots_;
  std::vector<Tensor> inputs_;  ///< of a pass
  std::size_t ahead_ = 0;       ///< forwards before the first backward
  std::size_t coming_ = 0, forwards_ = 0, inputs_done_ = 0, parameters_done_ = 0, receives_ = 0;
  bool trains_ = true;
  double busy_ = 0, waited_ = 0, mark_ = 0;
};

}  // namespace ronda
