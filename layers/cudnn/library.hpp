#pragma once
#include <cublasLt.h>
#include <cudnn.h>

#include <memory>
#include <string>
#include <string_view>

#include <ronda/layers/primitives.hpp>
#include <ronda/runtime/core/device_context.hpp>

namespace ronda::cudnn {

/// Throws DeviceError with the library's text and the call.
void check(cudnnStatus_t status, std::string_view call);
void check(cublasStatus_t status, std::string_view call);

struct Destroy {
  void operator()(cudnnHandle_t handle) const noexcept { cudnnDestroy(handle); }
  void operator()(cublasLtHandle_t handle) const noexcept { cublasLtDestroy(handle); }
};

/// The libraries as one GPU's operations share them.
class Library {
 public:
  Library(DeviceContext& context, Stream& stream, Precision precision);

  [[nodiscard]] std::string name() const;
  [[nodiscard]] Precision precision() const noexcept { return precision_; }
  /// cuDNN, which works on `stream` from now on.
  [[nodiscard]] cudnnHandle_t cudnn(Stream& stream) const;
  [[nodiscard]] cublasLtHandle_t cublas() const noexcept { return cublas_.get(); }
  /// Of planning: where candidates are timed, on memory from the context.
  [[nodiscard]] Stream& stream() const noexcept { return stream_; }
  [[nodiscard]] Buffer rehearsal_memory(std::size_t bytes) const { return context_.allocate(bytes); }

 private:
  DeviceContext& context_;
  Stream& stream_;
  Precision precision_;
  std::unique_ptr<cudnnContext, Destroy> cudnn_;
  std::unique_ptr<cublasLtContext, Destroy> cublas_;
};

constexpr std::size_t engines_tried = 4;                         ///< of what the libraries suggest, best first
constexpr std::size_t workspace_limit = std::size_t{128} << 20;  ///< of one operation
constexpr std::size_t workspace_alignment = 256;                 ///< bytes; the arenas' is less
[[nodiscard]] std::byte* aligned_workspace(std::byte* scratch) noexcept;

/// Throws InputError where the tensor is not plain float32, as all activations on a GPU are.
void require_plain(const TensorDesc& desc, const char* who);

std::unique_ptr<Operation> make_dense(std::shared_ptr<Library>, const DenseSpec&, const OperationContext&);
std::unique_ptr<Operation> make_convolution(std::shared_ptr<Library>, const ConvolutionSpec&, const OperationContext&);
std::unique_ptr<Operation> make_pool(const TensorDesc& input, const PoolSpec& spec);
std::unique_ptr<Operation> make_relu(const TensorDesc& input);
std::unique_ptr<LossOperation> make_softmax_cross_entropy(const TensorDesc& outputs, float smoothing);

}  // namespace ronda::cudnn
