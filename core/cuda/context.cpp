#include <ronda/core/cuda/check.hpp>
#include <ronda/core/cuda/kernels.hpp>
#include <ronda/core/cuda/stream.hpp>
#include <ronda/core/device_context.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <type_traits>

namespace ronda {
namespace cuda {
namespace {

cudaDeviceProp properties_of(int index) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties");
  return properties;
}

Gpu describe(const cudaDeviceProp& properties) {
  return {properties.name, properties.major, properties.minor, properties.totalGlobalMem};
}

std::string text_of(const Gpu& gpu) {
  char size[32];
  print_into(size, "%.1f GiB", static_cast<double>(gpu.memory_bytes) / (1U << 30U));
  return gpu.name + " (compute capability " + std::to_string(gpu.major) + "." + std::to_string(gpu.minor) + ", " +
         size + ")";
}

std::string uuid_of(const cudaDeviceProp& properties) {
  std::string text = "GPU-";
  for (const char byte : properties.uuid.bytes) {
    std::array<char, 3> digits{};
    std::snprintf(digits.data(), digits.size(), "%02x", static_cast<unsigned>(static_cast<unsigned char>(byte)));
    text += digits.data();
  }
  return text;
}

struct DestroyGraph {
  void operator()(cudaGraph_t graph) const noexcept { cudaGraphDestroy(graph); }
  void operator()(cudaGraphExec_t graph) const noexcept { cudaGraphExecDestroy(graph); }
};
template <class Handle>
using GraphHandle = std::unique_ptr<std::remove_pointer_t<Handle>, DestroyGraph>;

class GpuRecording final : public Recording {
 public:
  explicit GpuRecording(cudaGraph_t graph) {
    cudaGraphExec_t executable = nullptr;
    check(cudaGraphInstantiate(&executable, graph, cudaGraphInstantiateFlagUseNodePriority),  // those of the streams
          "cudaGraphInstantiate");
    executable_.reset(executable);
  }
  void replay(Stream& stream) override {
    check(cudaGraphLaunch(executable_.get(), handle_of(stream)), "cudaGraphLaunch");
  }

 private:
  GraphHandle<cudaGraphExec_t> executable_;
};

/// Ends the capture of a stream whatever happens, so that the stream can be used again.
class Capture {
 public:
  explicit Capture(cudaStream_t stream) : stream_(stream) {
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  }
  ~Capture() {
    if (ended_) return;
    cudaGraph_t graph = nullptr;
    cudaStreamEndCapture(stream_, &graph);
    const GraphHandle<cudaGraph_t> unwanted(graph);
    static_cast<void>(cudaGetLastError());
  }
  Capture(const Capture&) = delete;
  GraphHandle<cudaGraph_t> end() {
    ended_ = true;
    cudaGraph_t graph = nullptr;
    const cudaError_t status = cudaStreamEndCapture(stream_, &graph);
    GraphHandle<cudaGraph_t> owned(graph);
    check(status, "cudaStreamEndCapture");
    return owned;
  }

 private:
  cudaStream_t stream_;
  bool ended_ = false;
};

class GpuContext final : public DeviceContext {
 public:
  explicit GpuContext(int index) : index_(index) {
    cuda::enter(index);
    const cudaDeviceProp properties = properties_of(index);
    name_ = text_of(describe(properties));
    identity_ = uuid_of(properties);
    reads_any_memory_ = properties.pageableMemoryAccess != 0;
  }
  void enter() override { cuda::enter(index_); }
  [[nodiscard]] Device device() const noexcept override { return {DeviceKind::cuda, index_}; }
  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] std::string identity() const override { return identity_; }
  [[nodiscard]] std::size_t free_bytes() override {
    enter();
    std::size_t free = 0, all = 0;
    check(cudaMemGetInfo(&free, &all), "cudaMemGetInfo");
    return free;
  }
  std::unique_ptr<Stream> make_stream(StreamPriority priority) override {
    return std::make_unique<GpuStream>(index_, priority);
  }

  Buffer allocate(std::size_t bytes) override {
    if (bytes == 0) return {};
    enter();
    void* memory = nullptr;
    check(cudaMalloc(&memory, bytes), "cudaMalloc of " + std::to_string(bytes) + " bytes on " + device().text());
    std::shared_ptr<const void> keeper(memory, [](const void* p) { cudaFree(const_cast<void*>(p)); });
    check(cudaMemset(memory, 0, bytes), "cudaMemset");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");  // the streams of ours do not wait for the default one
    return {static_cast<std::byte*>(memory), bytes, device(), std::move(keeper)};
  }

  Buffer allocate_staging(std::size_t bytes) override {
    if (bytes == 0) return {};
    enter();
    void* memory = nullptr;
    check(cudaHostAlloc(&memory, bytes, cudaHostAllocPortable), "cudaHostAlloc of " + std::to_string(bytes) + " bytes");
    std::shared_ptr<const void> keeper(memory, [](const void* p) { cudaFreeHost(const_cast<void*>(p)); });
    std::fill_n(static_cast<std::byte*>(memory), bytes, std::byte{0});
    return {static_cast<std::byte*>(memory), bytes, Device{}, std::move(keeper)};
  }

  std::shared_ptr<const void> pin(std::span<std::byte> memory) override {
    enter();
    check(cudaHostRegister(memory.data(), memory.size(), cudaHostRegisterPortable),
          "cudaHostRegister of " + std::to_string(memory.size()) + " bytes");
    return {memory.data(), [](const void* p) { cudaHostUnregister(const_cast<void*>(p)); }};
  }

  void clear(void* memory, std::size_t bytes, Stream& stream) override {
    if (bytes == 0) return;
    enter();
    check(cudaMemsetAsync(memory, 0, bytes, handle_of(stream)), "cudaMemsetAsync");
  }

  void copy(const void* from, void* to, std::size_t bytes, Stream& stream) override {
    if (bytes == 0) return;
    enter();
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, handle_of(stream)), "cudaMemcpyAsync");
    if (reads_any_memory_ && (is_plain(from) || is_plain(to)))
      stream.synchronize();  // it need not have gone by staging
  }

  void add(const Tensor& from, const float* more, const Tensor& to, Stream& stream) override {
    enter();
    cuda::add(from, more, to, stream);
  }

  std::unique_ptr<DeviceHash> make_hash(std::span<const std::span<const std::byte>> pieces) override {
    enter();
    return cuda::make_hash(*this, pieces);
  }

  std::unique_ptr<Recording> record(Stream& stream, const std::function<void()>& work) override {
    enter();
    Capture capture(handle_of(stream));
    work();
    return std::make_unique<GpuRecording>(capture.end().get());
  }

 private:
  /// Memory of the host that CUDA was not told of.
  static bool is_plain(const void* memory) {
    cudaPointerAttributes attributes{};
    check(cudaPointerGetAttributes(&attributes, memory), "cudaPointerGetAttributes");
    return attributes.type == cudaMemoryTypeUnregistered;
  }

  int index_;
  std::string name_, identity_;
  bool reads_any_memory_ = false;  ///< of the host, by itself, as on Grace: copies may go on when their call returns
};

/// Why no GPU can be used; empty where one can.
std::string reason_of(const GpuSurvey& survey, cudaError_t status) {
  if (survey.driver_version == 0) return "there is no NVIDIA driver on this machine";
  if (survey.driver_version / 1000 < survey.runtime_version / 1000)
    return "the NVIDIA driver is for CUDA " + cuda_version_text(survey.driver_version) + " and this build needs " +
           cuda_version_text(survey.runtime_version) + "; update the driver, or build with an older CUDA";
  if (status == cudaErrorNoDevice || (status == cudaSuccess && survey.gpus.empty()))
    return "the NVIDIA driver shows no GPU; see CUDA_VISIBLE_DEVICES and nvidia-smi";
  if (status != cudaSuccess) return "the NVIDIA driver fails: " + std::string(cudaGetErrorString(status));
  return {};
}

}  // namespace
}  // namespace cuda

GpuSurvey find_gpus() {
  GpuSurvey survey;
  survey.built = true;
  // Without a driver this succeeds and says 0: the one question that needs none.
  cudaError_t status = cudaDriverGetVersion(&survey.driver_version);
  if (status == cudaSuccess) status = cudaRuntimeGetVersion(&survey.runtime_version);
  int count = 0;
  if (status == cudaSuccess && survey.driver_version > 0) status = cudaGetDeviceCount(&count);
  static_cast<void>(cudaGetLastError());  // asking is no error
  try {
    for (int i = 0; status == cudaSuccess && i < count; ++i)
      survey.gpus.push_back(cuda::describe(cuda::properties_of(i)));
    survey.reason = cuda::reason_of(survey, status);
  } catch (const Error& error) {
    survey.reason = error.what();
  }
  return survey;
}

void copy_now(const void* from, void* to, std::size_t bytes, Device device) {
  cuda::enter(device.index);
  cuda::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");  // the streams of ours do not wait for the default one
  cuda::check(cudaMemcpy(to, from, bytes, cudaMemcpyDefault), "cudaMemcpy");
  cuda::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");  // a copy within the device returns before it is done
}

std::unique_ptr<DeviceContext> make_cuda_context(int index) {
  const GpuSurvey survey = find_gpus();
  if (!survey.reason.empty()) throw InputError("no GPU to use: " + survey.reason);
  if (index < 0 || static_cast<std::size_t>(index) >= survey.gpus.size())
    throw InputError("there is no GPU " + std::to_string(index) + ": the driver shows " +
                     std::to_string(survey.gpus.size()));
  return std::make_unique<cuda::GpuContext>(index);
}

}  // namespace ronda
