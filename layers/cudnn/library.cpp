#include <ronda/layers/cudnn/library.hpp>
#include <ronda/runtime/core/cuda/stream.hpp>
#include <ronda/runtime/core/error.hpp>

#include <array>

namespace ronda::cudnn {

void check(cudnnStatus_t status, std::string_view call) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  std::array<char, 1024> detail{};
  cudnnGetLastErrorString(detail.data(), detail.size());
  throw DeviceError("cuDNN: " + std::string(call) + " failed: " + cudnnGetErrorString(status) +
                    (detail[0] != '\0' ? std::string(": ") + detail.data() : std::string()));
}

void check(cublasStatus_t status, std::string_view call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw DeviceError("cuBLASLt: " + std::string(call) + " failed: " + cublasLtGetStatusString(status));
}

Library::Library(DeviceContext& context, Stream& stream, Precision precision)
    : context_(context), stream_(stream), precision_(precision) {
  cudnnHandle_t cudnn = nullptr;
  check(cudnnCreate(&cudnn), "cudnnCreate");
  cudnn_.reset(cudnn);
  cublasLtHandle_t cublas = nullptr;
  check(cublasLtCreate(&cublas), "cublasLtCreate");
  cublas_.reset(cublas);
}

std::string Library::name() const {
  const std::size_t version = cudnnGetVersion();
  return "cuDNN " + std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100) + ", cuBLASLt " + std::to_string(cublasLtGetVersion()) + ", " +
         (precision_ == Precision::tf32 ? "tf32" : "float32") + " on " + context_.name();
}

cudnnHandle_t Library::cudnn(Stream& stream) const {
  check(cudnnSetStream(cudnn_.get(), cuda::handle_of(stream)), "cudnnSetStream");
  return cudnn_.get();
}

std::byte* aligned_workspace(std::byte* scratch) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(scratch);
  return scratch + (workspace_alignment - address % workspace_alignment) % workspace_alignment;
}

void require_plain(const TensorDesc& desc, const char* who) {
  if (desc.dtype != DType::float32 || !same_bytes(desc, {desc.shape, DType::float32, {}}))
    throw InputError(std::string(who) + " on a GPU takes plain float32, not " + desc.text());
}

}  // namespace ronda::cudnn
