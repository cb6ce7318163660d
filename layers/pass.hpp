#pragma once
#include <cstdint>

#include <ronda/core/parameter.hpp>
#include <ronda/core/random.hpp>
#include <ronda/core/step_control.hpp>
#include <ronda/core/stream.hpp>
#include <ronda/layers/part_exchange.hpp>
#include <ronda/layers/rank_sums.hpp>

namespace ronda {

enum class Mode : std::uint8_t { training, evaluation };

/// Who is told that a parameter's gradient is complete: a plain pointer pair, because it is copied in every step.
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

/// Calls mover.move_on() after each operation of a pass, to move on what is sent and received meanwhile; the mover
/// outlives the pass. Without one it does nothing.
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

/// What every layer is told of the pass it takes part in. A value on the caller's stack.
struct Pass {
  Stream& stream;
  Mode mode = Mode::training;
  std::uint64_t step = 0;         ///< from 1; the same on all ranks
  RngKey key{0, Purpose::layer};  ///< of the step, for layers that draw random numbers
  std::uint64_t first_row = 0;  ///< the place of row 0 in the global batch: what is drawn for a row by its place is the
                                ///< same on any number of ranks
  const Tensor* weights = nullptr;  ///< float32 (N): 1 a sample, 0 a padding row, or what the user weighs samples with
  float loss_scale = 1;             ///< a power of two that the loss gradient is multiplied with …
  const float* more_scale = nullptr;  ///< … and another, in the memory of the stream's device; null: 1
  StepControl* control = nullptr;     ///< where the loss adds its sums; in the memory of the stream's device
  RankSums* ranks = nullptr;          ///< of the ranks that train together; null: this one is alone
  PartExchange* parts = nullptr;     ///< of the ranks that each compute a part of an operation; null: this one is alone
  OnReady on_ready;                  ///< called by a layer for each parameter whose gradient is complete
  AfterOperation after_operation{};  ///< called by a program

  /// The same pass, in which `sink.mark_ready(id, stream)` hears of every finished gradient.
  template <class Sink>
  [[nodiscard]] Pass reporting(Sink& sink) const {
    Pass pass = *this;
    pass.on_ready = OnReady(sink);
    return pass;
  }
};

}  // namespace ronda
