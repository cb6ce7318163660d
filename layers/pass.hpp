#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <ronda/core/random.hpp>
#include <ronda/core/state.hpp>
#include <ronda/core/step_control.hpp>
#include <ronda/core/stream.hpp>
#include <ronda/core/tensor.hpp>

namespace ronda {

/// The communication of an operation with the ranks that have its other parts, in a pass: a sum, or a gather of rows.
struct PartMessages {
  std::size_t sums = 0;                  ///< numbers to sum; 0: no sum
  TensorDesc summed = {};                ///< description of the summed tensor; the layout is the same on all ranks
  std::size_t rows = 0;                  ///< number of rows to gather
  std::vector<std::size_t> widths = {};  ///< row width of each part; empty: no gather
  [[nodiscard]] bool empty() const noexcept { return sums == 0 && widths.empty(); }
  bool operator==(const PartMessages&) const = default;
};

/// Communication in the middle of a pass, between ranks that each compute a part of a model's operations. Only programs
/// under a strategy have one; other programs compute all parts themselves.
///
/// All functions are collective over these ranks; calls match in the order of the calling thread. They throw LogicError
/// for a sum or gather that no operation has planned (OperationPlan::parts), CommunicationError if a rank does not take
/// part.
class PartExchange {
 public:
  virtual ~PartExchange() = default;
  /// Replaces `numbers` by the sums over the parts, bitwise equal on all ranks.
  virtual void add_up(std::span<float> numbers) = 0;
  /// Writes to each row of `all` the corresponding rows of `mine` from all parts, one after another.
  /// @param widths  row width of each part; `mine` has the width of this rank's part
  virtual void gather(std::span<const float> mine, std::span<float> all, std::span<const std::size_t> widths) = 0;
};

/// Sums over all ranks in the middle of a pass, for operations that need statistics of the global batch. Only programs
/// under a strategy have one.
class RankSums {
 public:
  virtual ~RankSums() = default;
  /// Replaces `numbers` by the sums over all ranks, bitwise equal on all. Collective; calls match in the order of the
  /// calling thread. Throws LogicError for a length that no operation has planned (OperationPlan::rank_sums);
  /// CommunicationError.
  virtual void add_up(std::span<double> numbers) = 0;
};

enum class Mode : std::uint8_t { training, evaluation };

/// A callback for parameters whose gradient is complete. A pair of pointers, because it is copied in every step.
class OnReady {
 public:
  OnReady() = default;
  template <class Sink>
  explicit OnReady(Sink& sink)
      : sink_(&sink),
        call_([](void* s, ParameterId id, Stream& stream) { static_cast<Sink*>(s)->mark_ready(id, stream); }) {}
  void operator()(ParameterId id, Stream& stream) const {
    if (call_ != nullptr) call_(sink_, id, stream);
  }

 private:
  void* sink_ = nullptr;
  void (*call_)(void*, ParameterId, Stream&) = nullptr;
};

/// Calls `mover.move_on()` after each operation of a pass, to progress messages that are in flight. The mover must
/// outlive the pass. Does nothing without a mover.
class AfterOperation {
 public:
  AfterOperation() = default;
  template <class Mover>
  explicit AfterOperation(Mover& mover) : mover_(&mover), call_([](void* m) { static_cast<Mover*>(m)->move_on(); }) {}
  void operator()() const {
    if (call_ != nullptr) call_(mover_);
  }

 private:
  void* mover_ = nullptr;
  void (*call_)(void*) = nullptr;
};

/// The parameters of one pass, for all its operations. A value on the caller's stack.
struct Pass {
  Stream& stream;
  Mode mode = Mode::training;
  std::uint64_t step = 0;           ///< from 1; the same on all ranks
  RngKey key{0, Purpose::layer};    ///< key of the step, for layers that draw random numbers
  std::uint64_t first_row = 0;      ///< index of row 0 in the global batch; random numbers of a row depend on its index
  const Tensor* weights = nullptr;  ///< float32 (N): 1, or the user's weight, per sample; 0 for a padding row
  float loss_scale = 1;             ///< power of two by which the loss gradient is multiplied
  const float* more_scale = nullptr;  ///< a second such factor, in the memory of the stream's device; null: 1
  StepControl* control = nullptr;     ///< where the loss adds its sums; in the memory of the stream's device
  RankSums* ranks = nullptr;          ///< sums over the ranks that train together; null: a single rank
  PartExchange* parts = nullptr;      ///< between ranks that share an operation; null: a single rank
  OnReady on_ready;                   ///< called by a layer for each parameter whose gradient is complete
  AfterOperation after_operation{};   ///< called by a program after each operation

  /// A copy of this pass that calls `sink.mark_ready(id, stream)` for every complete gradient.
  template <class Sink>
  [[nodiscard]] Pass reporting(Sink& sink) const {
    Pass pass = *this;
    pass.on_ready = OnReady(sink);
    return pass;
  }
};

}  // namespace ronda
