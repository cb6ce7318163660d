#pragma once
#include <cstddef>
#include <string_view>

#include <ronda/layers/pass.hpp>
#include <ronda/runtime/core/state.hpp>
#include <ronda/runtime/core/tensor.hpp>

namespace ronda {

class Planner;
class Bindings;

/// A step of a model. First it is *planned* (once: shapes in, shapes out, memory asked for), then *bound* to the memory
/// it asked for, then run many times. A composite (Sequential) is a layer too, and so is a user's own.
///
/// Not thread-safe: one layer takes part in one pass at a time.
class Layer {
 public:
  virtual ~Layer() = default;

  /// The field's word for it ("dense", "conv"); parameters are numbered by kind: `dense1.weight`.
  [[nodiscard]] virtual std::string_view kind() const noexcept = 0;

  /// Takes the description of what it will be given and returns that of what it will give. Asks the planner for
  /// parameters, memory and primitives; touches no memory itself. Throws InputError for shapes that do not fit.
  /// The gradient of a tensor has the tensor's own description, layout included.
  virtual TensorDesc plan(const TensorDesc& input, Planner& planner) = 0;

  /// Called once after planning, when the memory is there.
  virtual void bind(const Bindings& bindings) = 0;

  /// The output stays valid until the next forward. `input` must stay valid until the pass's backward.
  virtual const Tensor& forward(const Tensor& input, const Pass& pass) = 0;

  /// Writes (never adds to) the gradients of its parameters, tells `pass.on_ready` of each as soon as it is complete,
  /// and returns the gradient of its input, valid until the next layer's backward has returned; an empty tensor where
  /// the planner said that nobody needs it. `output_gradient` is not changed.
  virtual const Tensor& backward(const Tensor& output_gradient, const Pass& pass) = 0;

  /// Shows what must be kept beside parameters (batch statistics); most layers have none.
  virtual void visit(StateVisitor& /*visitor*/) {}

  /// Whether `plan` takes an input of any layout. To one that does not, as a user's own may not, a composite gives
  /// plain row-major tensors, with a reorder before it where that needs one.
  [[nodiscard]] virtual bool reads_any_layout() const noexcept { return false; }

  /// Whether it computes by the planner's primitives alone, and so wherever they do. One that reads or writes elements
  /// itself, as a user's own may, is for the processor.
  [[nodiscard]] virtual bool runs_on_any_device() const noexcept { return false; }

  /// Asked by a composite before planning: "can you do `next`'s work too?" A layer that says yes plans for both, and
  /// `next` is left out. Only layers that know each other fuse; a user's own says no.
  virtual bool absorb(const Layer& /*next*/) { return false; }
};

/// What a model is trained on: compares outputs with targets.
class Loss {
 public:
  virtual ~Loss() = default;
  virtual void plan(const TensorDesc& outputs, Planner& planner) = 0;
  /// As a layer's.
  [[nodiscard]] virtual bool runs_on_any_device() const noexcept { return false; }
  virtual void bind(const Bindings& bindings) = 0;

  /// Adds the weighted sums of losses, weights and correct answers to `pass.control`, and returns the gradient of
  /// (loss sum × pass.loss_scale × *pass.more_scale) with respect to `outputs`, in the layout of `outputs`. Sums, not
  /// means: the mean is taken once, over all ranks, by the optimizer.
  virtual const Tensor& forward_backward(const Tensor& outputs, const Tensor& target, const Pass& pass) = 0;

  /// Only the sums.
  virtual void forward(const Tensor& outputs, const Tensor& target, const Pass& pass) = 0;
};

}  // namespace ronda
