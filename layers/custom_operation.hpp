#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include <ronda/layers/operation.hpp>

namespace ronda {

/// The arguments of a user-defined operation: views of plain, row-major arrays. Valid for one call.
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
  /// State i, in the order in which the layer requested them; kept from step to step.
  template <class T = float>
  [[nodiscard]] std::span<T> state(std::size_t i = 0) const {
    return memory_.states[i].as<T>();
  }
  /// Memory of `kept_bytes` bytes, kept from forward to backward.
  [[nodiscard]] std::byte* kept() const noexcept { return memory_.pass; }

  /// The output. Forward writes it; backward may read it.
  [[nodiscard]] std::span<float> output() const { return memory_.output.as<float>(); }

  // ---- in backward --------------------------------------------------------------------------------------------------

  [[nodiscard]] std::span<const float> output_gradient() const { return output_gradient_->as<const float>(); }
  /// Empty if the gradient is not needed.
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

/// A user-defined operation, in float32 on the processor. Its arrays are plain; features after a flatten are in
/// PyTorch's (C, H, W) order. One object may serve several models and passes at a time, so it must not store data of a
/// pass. `check_gradients` compares its backward with finite differences.
class CustomOperation {
 public:
  virtual ~CustomOperation() = default;
  /// The name of the operation in tables and messages: "prelu".
  [[nodiscard]] virtual std::string_view kind() const noexcept = 0;
  /// The shape of the output. Throws InputError for inputs that the operation does not accept.
  [[nodiscard]] virtual Shape output(std::span<const Shape> inputs) const = 0;
  /// Bytes of memory to keep from forward to backward.
  [[nodiscard]] virtual std::size_t kept_bytes(std::span<const Shape> /*inputs*/) const { return 0; }

  virtual void forward(const CustomArguments& arguments, const Pass& pass) const = 0;
  /// Writes (never adds to) the gradients of parameters and inputs. Gradients are sums over the samples, not divided by
  /// the batch size.
  virtual void backward(const CustomArguments& arguments, const Pass& pass) const = 0;
};

/// Wraps a CustomOperation as an Operation. Throws InputError for parameters or inputs that a CustomOperation cannot
/// read.
[[nodiscard]] std::unique_ptr<Operation> make_custom(std::shared_ptr<const CustomOperation> custom,
                                                     std::span<const TensorDesc> inputs,
                                                     std::span<const TensorDesc> parameters, Mode mode);

}  // namespace ronda
