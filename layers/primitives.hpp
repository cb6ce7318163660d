#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ronda/core/parameter.hpp>
#include <ronda/layers/pass.hpp>
#include <ronda/layers/picker.hpp>
#include <ronda/layers/precision.hpp>

namespace ronda {

class DeviceContext;

enum class Activation : std::uint8_t { none, relu };
enum class PoolKind : std::uint8_t { maximum, average };

struct PoolSpec {
  PoolKind kind = PoolKind::maximum;
  std::int64_t kernel = 2, stride = 2,
               padding = 0;  ///< both directions; average counts only real elements under padding
  bool operator==(const PoolSpec&) const = default;
};

/// y = activation(x · Wᵀ + b), x (N, inputs), W (outputs, inputs). x may be an activation (N, H, W, C) of any layout
/// that is read as (N, H·W·C): its bytes in their order, which must be dense (no padding).
struct DenseSpec {
  TensorDesc input;
  std::int64_t outputs = 0;
  bool bias = true;
  Activation activation = Activation::none;
};

/// Cross-correlation of (N, H, W, C) with weights (out, in, kernel, kernel), then activation, then pooling.
struct ConvolutionSpec {
  TensorDesc input;
  std::int64_t outputs = 0, kernel = 3, stride = 1, padding = 0;
  bool bias = true;
  Activation activation = Activation::none;
  std::optional<PoolSpec> pool;
};

/// What an operation turned out to need, once made.
struct OperationPlan {
  TensorDesc output;
  std::vector<TensorDesc> parameters;  ///< weight, then bias, in the layouts it wants; gradients have the same
  std::size_t pass_bytes = 0;          ///< kept from forward to backward, beside input and output
  std::size_t scratch_bytes = 0;
  std::string picks;  ///< what was chosen, for --verbose and the plan
};

/// The memory an operation works on. Pointers stay valid as long as the operation.
struct OperationMemory {
  Tensor output, input_gradient;           ///< input_gradient empty where nobody needs it
  std::array<Parameter*, 2> parameters{};  ///< weight, bias
  std::byte* pass = nullptr;
  std::byte* scratch = nullptr;
};

/// A planned computation of one device's library: made once, run in every step, free of allocation of ours.
class Operation {
 public:
  virtual ~Operation() = default;
  [[nodiscard]] const OperationPlan& plan() const noexcept { return plan_; }
  virtual void bind(const OperationMemory& memory) = 0;
  /// `input` has the description the operation was made for; only its address may differ between calls.
  virtual void forward(const Tensor& input, const Pass& pass) = 0;
  /// Parameter gradients first, each reported by `pass.on_ready`, then the input's.
  virtual void backward(const Tensor& input, const Tensor& output_gradient, const Pass& pass) = 0;

 protected:
  OperationPlan plan_;
};

/// What an operation is made for, beside its own description.
struct OperationContext {
  Picker& picker;
  Mode mode = Mode::training;
  bool input_gradient = true;
};

/// A loss as one device computes it: see Loss for what it adds and writes.
class LossOperation {
 public:
  virtual ~LossOperation() = default;
  [[nodiscard]] virtual std::size_t scratch_bytes() const noexcept { return 0; }
  /// Adds to `pass.control` and writes `gradient`.
  virtual void run(const Tensor& outputs, const Tensor& target, const Tensor& gradient, std::byte* scratch,
                   const Pass& pass) = 0;
};

/// Makes the operations of one device. Backends: `reference/` (plain loops), `onednn/`, `cudnn/`.
/// Every make throws InputError where the shapes do not fit.
class Primitives {
 public:
  virtual ~Primitives() = default;
  /// Library and version, threads: part of the plan.
  [[nodiscard]] virtual std::string name() const = 0;
  /// Of activations, parameters and their gradients; what else a model is given has to be cast.
  [[nodiscard]] virtual DType dtype() const noexcept { return DType::float32; }
  virtual std::unique_ptr<Operation> dense(const DenseSpec&, const OperationContext&) = 0;
  virtual std::unique_ptr<Operation> convolution(const ConvolutionSpec&, const OperationContext&) = 0;
  virtual std::unique_ptr<Operation> pool(const TensorDesc& input, const PoolSpec&, const OperationContext&) = 0;
  virtual std::unique_ptr<Operation> relu(const TensorDesc& input, const OperationContext&) = 0;
  /// Copies between layouts (backward: the other way), where a neighbour cannot read what there is. Where `dtype` is a
  /// half type also between that and float32.
  virtual std::unique_ptr<Operation> reorder(const TensorDesc& from, const TensorDesc& to, const OperationContext&) = 0;
  /// Of plain outputs (N, classes) in `dtype`; the smoothing is in [0, 1). Plain loops where a device has nothing of
  /// its own.
  virtual std::unique_ptr<LossOperation> softmax_cross_entropy(const TensorDesc& outputs, float smoothing);
};

/// Plain loops, one thread, every shape; what the others are tested against.
std::unique_ptr<Primitives> make_reference_primitives();
/// oneDNN on the CPU with that many threads.
std::unique_ptr<Primitives> make_onednn_primitives(int threads);
/// cuDNN and cuBLASLt on a GPU, all activations plain. Candidates are timed on `stream`, of `context`; both outlive the
/// operations. Throws InputError in a build without CUDA, DeviceError for what the libraries report.
std::unique_ptr<Primitives> make_cudnn_primitives(DeviceContext& context, Stream& stream, const EngineRules& rules);

/// (H + 2·padding − kernel) / stride + 1. Throws InputError, naming `what`, where that is no positive size.
std::int64_t window_count(std::int64_t extent, std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                          const char* what);
[[nodiscard]] Shape convolution_output(const ConvolutionSpec& spec);  ///< before pooling
[[nodiscard]] Shape pool_output(const Shape& input, const PoolSpec& spec);

}  // namespace ronda
