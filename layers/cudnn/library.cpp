#include <ronda/core/cuda/stream.hpp>
#include <ronda/core/error.hpp>
#include <ronda/layers/cudnn/library.hpp>

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
  throw DeviceError("cuBLASLt: " + std::string(call) + " failed: " + cublas_lt().status_string(status));
}

Library::Library(DeviceContext& context, Stream& stream, const EngineRules& rules)
    : context_(context), stream_(stream), rules_(rules) {
  cudnnHandle_t cudnn = nullptr;
  check(cudnnCreate(&cudnn), "cudnnCreate");
  cudnn_.reset(cudnn);
  cublasLtHandle_t cublas = nullptr;
  check(cublas_lt().create(&cublas), "cublasLtCreate");
  cublas_.reset(cublas);
}

std::string Library::name() const {
  const std::size_t version = cudnnGetVersion();
  return "cuDNN " + std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100) + ", cuBLASLt " + std::to_string(cublas_lt().version()) + ", " +
         std::string(name_of(rules_.precision)) + (rules_.deterministic ? "" : ", not deterministic") + " on " +
         context_.name();
}

cudnnHandle_t Library::cudnn(Stream& stream) const {
  check(cudnnSetStream(cudnn_.get(), cuda::handle_of(stream)), "cudnnSetStream");
  return cudnn_.get();
}

std::byte* aligned_workspace(std::byte* scratch) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(scratch);
  return scratch + (workspace_alignment - address % workspace_alignment) % workspace_alignment;
}

void require_plain(const TensorDesc& desc, DType dtype, const char* who) {
  if (!same_bytes(desc, {desc.shape, dtype, {}}))
    throw InputError(std::string(who) + " on this GPU takes plain " + std::string(name_of(dtype)) + ", not " +
                     desc.text());
}

}  // namespace ronda::cudnn
