#pragma once
#include <cstdint>
#include <string_view>

#include <ronda/core/metric.hpp>
#include <ronda/core/state.hpp>
#include <ronda/core/tensor.hpp>
#include <ronda/layers/pass.hpp>

namespace ronda {

class Planner;
class Bindings;

/// How gradients go through a layer in backward: what the planner must know to let them share memory. All are right
/// for a layer of which `any` is; the others take less memory.
enum class GradientFlow : std::uint8_t {
  any,    ///< nothing is known: it may call its children in any order, read what it is given and what they return until
          ///< it returns, and return either
  chain,  ///< calls its children one after the other, the last one that was planned first, and gives each what the one
          ///< after it returned
  own,    ///< has no children, and returns memory that it has asked for itself
};

/// What a layer takes where its input is (N, features) and comes from a Flatten.
enum class FeatureOrder : std::uint8_t {
  logical,  ///< features in (C, H, W) order
  kept,     ///< any order: it does the same to each feature, and gives them in the order in which they came
  read,     ///< any order: it asks the planner which one it is (Planner::take_flattened), or its layers do
};

/// A step of a model. First it is *planned* (once: shapes in, shapes out, memory asked for), then *bound* to the memory
/// it asked for, then run many times. A composite (Sequential) is a layer too, and so is a user's own.
///
/// Not thread-safe: one layer takes part in one pass at a time.
class Layer {
 public:
  virtual ~Layer() = default;

  /// The field's word for it ("dense", "conv"); parameters are numbered by kind: `dense1.weight`.
  [[nodiscard]] virtual std::string_view kind() const noexcept = 0;

  /// Called once after planning, when the memory is there.
  virtual void bind(const Bindings& bindings) = 0;

  /// The output stays valid until the next forward. `input` must stay valid until the pass's backward.
  virtual const Tensor& forward(const Tensor& input, const Pass& pass) = 0;

  /// Writes (never adds to) the gradients of its parameters, tells `pass.on_ready` of each as soon as it is complete,
  /// and returns the gradient of its input; an empty tensor where the planner said that nobody needs it. That is valid
  /// until the layer before has used it: in a Sequential until that one's backward has returned; in any other composite
  /// until the composite's own has, and then as what that returned. `output_gradient` stays as it is until then too.
  virtual const Tensor& backward(const Tensor& output_gradient, const Pass& pass) = 0;

  /// Shows what must be kept beside parameters (a running mean), under names that no other layer uses, in an order that
  /// does not change, and in memory that stays; most layers have none. Unless its scope says otherwise, each rank's own
  /// changes with its samples, and all take the mean over the ranks before they evaluate (see Scope). A composite
  /// passes the visitor on to its layers.
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

  /// One that is no more than `any` costs memory, and is always right. Asked before and after `plan`.
  [[nodiscard]] virtual GradientFlow gradient_flow() const noexcept { return GradientFlow::any; }

  /// To one that takes features in `logical` order a Sequential gives them so, with a reorder before it where that
  /// needs one.
  [[nodiscard]] virtual FeatureOrder feature_order() const noexcept { return FeatureOrder::logical; }

 protected:
  /// Called by Planner::plan, once. Takes the description of what the layer will be given and returns that of what it
  /// will give. Asks the planner for parameters, memory and primitives, and to plan the layers that it is made of;
  /// touches no memory itself. Throws InputError for shapes that do not fit. The gradient of a tensor has the tensor's
  /// own description, layout included.
  virtual TensorDesc plan(const TensorDesc& input, Planner& planner) = 0;

 private:
  friend class Planner;
  bool planned_ = false;
};

/// What a model is trained on: compares outputs with targets.
class Loss {
 public:
  virtual ~Loss() = default;
  /// As a layer's.
  [[nodiscard]] virtual bool runs_on_any_device() const noexcept { return false; }
  virtual void bind(const Bindings& bindings) = 0;

  /// What it measures beside the loss; none unless it says so.
  [[nodiscard]] virtual Metric metric() const { return {}; }

  /// Adds the weighted sums of losses, weights and metrics to `pass.control`, and returns the gradient of
  /// (loss sum × pass.loss_scale × *pass.more_scale) with respect to `outputs`, in the layout of `outputs`. Sums, not
  /// means: the mean is taken once, over all ranks, by the optimizer.
  virtual const Tensor& forward_backward(const Tensor& outputs, const Tensor& target, const Pass& pass) = 0;

  /// Only the sums.
  virtual void forward(const Tensor& outputs, const Tensor& target, const Pass& pass) = 0;

 protected:
  /// Called by Planner::plan, once; as a layer's.
  virtual void plan(const TensorDesc& outputs, Planner& planner) = 0;

 private:
  friend class Planner;
  bool planned_ = false;
};

}  // namespace ronda
