#pragma once
#include <cudnn.h>

#include <memory>
#include <string>
#include <string_view>

#include <ronda/core/device_context.hpp>
#include <ronda/layers/cudnn/cublas_lt.hpp>
#include <ronda/layers/primitives.hpp>

namespace ronda::cudnn {

/// Throws DeviceError with the library's text and the call.
void check(cudnnStatus_t status, std::string_view call);
void check(cublasStatus_t status, std::string_view call);

struct Destroy {
  void operator()(cudnnHandle_t handle) const noexcept { cudnnDestroy(handle); }
  void operator()(cublasLtHandle_t handle) const noexcept { cublas_lt().destroy(handle); }
};

/// The libraries as one GPU's operations share them.
class Library {
 public:
  Library(DeviceContext& context, Stream& stream, const EngineRules& rules);

  [[nodiscard]] std::string name() const;
  [[nodiscard]] const EngineRules& rules() const noexcept { return rules_; }
  [[nodiscard]] DType dtype() const noexcept { return dtype_of_layers(rules_.precision); }
  /// cuDNN, which works on `stream` from now on.
  [[nodiscard]] cudnnHandle_t cudnn(Stream& stream) const;
  [[nodiscard]] cublasLtHandle_t cublas() const noexcept { return cublas_.get(); }
  /// Of planning: where candidates are timed, on memory from the context.
  [[nodiscard]] Stream& stream() const noexcept { return stream_; }
  [[nodiscard]] Buffer rehearsal_memory(std::size_t bytes) const { return context_.allocate(bytes); }

 private:
  DeviceContext& context_;
  Stream& stream_;
  EngineRules rules_;
  std::unique_ptr<cudnnContext, Destroy> cudnn_;
  std::unique_ptr<cublasLtContext, Destroy> cublas_;
};

constexpr std::size_t engines_tried = 4;                         ///< of what the libraries suggest, best first
constexpr std::size_t workspace_limit = std::size_t{128} << 20;  ///< of one operation
constexpr std::size_t workspace_alignment = 256;                 ///< bytes; the arenas' is less
[[nodiscard]] std::byte* aligned_workspace(std::byte* scratch) noexcept;
[[nodiscard]] constexpr std::size_t aligned_bytes(std::size_t bytes) noexcept {
  return (bytes + workspace_alignment - 1) / workspace_alignment * workspace_alignment;
}

/// Throws InputError where the tensor is not plain and in `dtype`, as all activations on a GPU are.
void require_plain(const TensorDesc& desc, DType dtype, const char* who);

std::unique_ptr<Operation> make_dense(std::shared_ptr<Library>, const DenseProblem&, const OperationContext&);
std::unique_ptr<Operation> make_convolution(std::shared_ptr<Library>, const ConvolutionProblem&,
                                            const OperationContext&);
std::unique_ptr<Operation> make_pool(DType dtype, const TensorDesc& input, const PoolSpec& spec);
std::unique_ptr<Operation> make_elementwise(DType dtype, const TensorDesc& input, const ElementwiseSpec& spec);
std::unique_ptr<Operation> make_add(DType dtype, std::span<const TensorDesc> inputs, const AddSpec& spec);
std::unique_ptr<Operation> make_concat(DType dtype, std::span<const TensorDesc> inputs, const ConcatSpec& spec);
/// From plain (N, H, W, C) to (C, H, W) order, sample by sample.
std::unique_ptr<Operation> make_transposition(DType dtype, const TensorDesc& image);
/// Between float32 and `dtype`. Throws LogicError for anything else.
std::unique_ptr<Operation> make_conversion(DType dtype, const TensorDesc& from, const TensorDesc& to);
/// Null for weights of classes.
std::unique_ptr<LossOperation> make_softmax_cross_entropy(DType dtype, const TensorDesc& outputs,
                                                          const CrossEntropySpec& spec);

}  // namespace ronda::cudnn
