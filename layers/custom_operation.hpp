#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include <ronda/layers/operation.hpp>

namespace ronda {

/// What a user's own operation works on: views of plain arrays, rows after rows. Valid for one call.
class CustomArguments {
 public:
  /// @param output_gradient  null in a forward pass
  CustomArguments(Inputs inputs, const OperationMemory& memory, const Tensor* output_gradient = nullptr)
      : inputs_(inputs), memory_(memory), output_gradient_(output_gradient) {}

  [[nodiscard]] const Shape& shape(std::size_t i = 0) const noexcept { return inputs_[i].shape(); }  ///< of input i
  template <class T = float>
  [[nodiscard]] std::span<const T> input(std::size_t i = 0) const {
    return inputs_[i].as<const T>();
  }
  [[nodiscard]] std::span<const float> parameter(std::size_t i = 0) const {
    return memory_.parameters[i]->value.as<const float>();
  }
  /// In the order in which the layer asked for them; kept from step to step.
  template <class T = float>
  [[nodiscard]] std::span<T> state(std::size_t i = 0) const {
    return memory_.states[i].as<T>();
  }
  /// Of `kept_bytes`, from forward to backward.
  [[nodiscard]] std::byte* kept() const noexcept { return memory_.pass; }

  /// Forward writes it; backward may read it.
  [[nodiscard]] std::span<float> output() const { return memory_.output.as<float>(); }

  // ---- of backward --------------------------------------------------------------------------------------------------

  [[nodiscard]] std::span<const float> output_gradient() const { return output_gradient_->as<const float>(); }
  /// Empty where nobody needs it.
  [[nodiscard]] std::span<float> input_gradient(std::size_t i = 0) const {
    const Tensor& gradient = memory_.input_gradients[i];
    return gradient.empty() ? std::span<float>() : gradient.as<float>();
  }
  [[nodiscard]] std::span<float> parameter_gradient(std::size_t i = 0) const {
    return memory_.parameters[i]->gradient.as<float>();
  }

 private:
  Inputs inputs_;
  const OperationMemory& memory_;
  const Tensor* output_gradient_;
};

/// An operation of a user's own, in float32 and on the processor. It is given plain arrays, and features behind a
/// flatten in PyTorch's (C, H, W) order. One object serves any number of models and passes, so it keeps nothing itself.
/// `check_gradients` compares its backward with finite differences.
class CustomOperation {
 public:
  virtual ~CustomOperation() = default;
  /// What tables and messages call it: "prelu".
  [[nodiscard]] virtual std::string_view kind() const noexcept = 0;
  /// The shape that it gives. Throws InputError for inputs that it does not take.
  [[nodiscard]] virtual Shape output(std::span<const Shape> inputs) const = 0;
  /// Memory that it wants from forward to backward.
  [[nodiscard]] virtual std::size_t kept_bytes(std::span<const Shape> /*inputs*/) const { return 0; }

  virtual void forward(const CustomArguments& arguments, const Pass& pass) const = 0;
  /// Writes (never adds to) the gradients of parameters and inputs. Gradients are sums over the samples: nobody divides
  /// by the batch.
  virtual void backward(const CustomArguments& arguments, const Pass& pass) const = 0;
};

/// A user's own as one of a device's. Throws InputError where its parameters or inputs are not for it.
[[nodiscard]] std::unique_ptr<Operation> make_custom(std::shared_ptr<const CustomOperation> custom,
                                                     std::span<const TensorDesc> inputs,
                                                     std::span<const TensorDesc> parameters, Mode mode);

}  // namespace ronda
