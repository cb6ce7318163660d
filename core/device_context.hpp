#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ronda/core/buffer.hpp>
#include <ronda/core/device.hpp>
#include <ronda/core/device_hash.hpp>
#include <ronda/core/stream.hpp>
#include <ronda/core/tensor.hpp>

namespace ronda {

enum class StreamPriority : std::uint8_t { usual, high };

/// Work of a stream that was recorded once, to be given to the device again in one go.
class Recording {
 public:
  virtual ~Recording() = default;
  virtual void replay(Stream& stream) = 0;
};

/// One device as a process uses it: its memory, its streams, and copies. It outlives its streams and buffers.
///
/// Errors: ResourceError where memory runs out, DeviceError for what else a device reports; both name the call.
class DeviceContext {
 public:
  virtual ~DeviceContext() = default;
  [[nodiscard]] virtual Device device() const noexcept = 0;
  /// `NVIDIA H200 (compute capability 9.0, 139.7 GiB)`: of the plan, and for people.
  [[nodiscard]] virtual std::string name() const = 0;
  /// What tells two devices apart, on any host: a GPU's UUID.
  [[nodiscard]] virtual std::string identity() const = 0;
  /// Bytes of its memory that nobody has taken so far.
  [[nodiscard]] virtual std::size_t free_bytes() = 0;
  /// The calling thread works with this device from now on. Whatever is called here and on the device's streams says so
  /// by itself; a library that is called directly wants it said before.
  virtual void enter() {}
  virtual std::unique_ptr<Stream> make_stream(StreamPriority priority) = 0;
  /// Zeroed memory of the device.
  virtual Buffer allocate(std::size_t bytes) = 0;
  /// Zeroed memory of the host that the device copies to and from by itself (pinned).
  virtual Buffer allocate_staging(std::size_t bytes) = 0;
  /// Makes memory of the host, as long as what is returned, as good as staging's.
  virtual std::shared_ptr<const void> pin(std::span<std::byte> memory) = 0;
  /// Writes zeros in the order of `stream`, to memory of the device.
  virtual void clear(void* memory, std::size_t bytes, Stream& stream) = 0;
  /// Copies in the order of `stream`, from anywhere to anywhere. What is copied must stay until that is done; with a
  /// host's memory that is not staging's only until the call returns, which is when what was read may be changed and
  /// what was written is there.
  virtual void copy(const void* from, void* to, std::size_t bytes, Stream& stream) = 0;
  /// to[i] = from[i] + more[i], or from[i] where `more` is null, in the order of `stream` and in the device's memory.
  /// Each of the three may be another. Tensors of one shape and layout: `from` of a Number's type, `more` of float32,
  /// `to` of either; added in float32, then rounded.
  virtual void add(const Tensor& from, const float* more, const Tensor& to, Stream& stream) = 0;
  /// Hashes of pieces of this device's memory, whole words of 4 bytes each, which outlive what is returned. Throws
  /// LogicError where the device has none: the host hashes its own memory.
  virtual std::unique_ptr<DeviceHash> make_hash(std::span<const std::span<const std::byte>> pieces);
  /// Calls `work` once, and keeps what it gives to `stream` instead of doing it. `work` waits for nothing, and all
  /// memory that it names stays where it is. Null where the device has no recordings. What `work` throws is passed on.
  virtual std::unique_ptr<Recording> record(Stream& /*stream*/, const std::function<void()>& /*work*/) {
    return nullptr;
  }
};

/// The processor, with so many threads a stream.
std::unique_ptr<DeviceContext> make_cpu_context(int threads);
/// GPU `index`. Throws InputError, with the reason, where `find_gpus` says that there is none to use.
std::unique_ptr<DeviceContext> make_cuda_context(int index);

/// Copies between the host and `device`, or within it, after all that the device was given before, and returns when it
/// is done. For the edges (files, hashes, initial values), not for the step.
void copy_now(const void* from, void* to, std::size_t bytes, Device device);

struct Gpu {
  std::string name;          ///< as the driver has it
  int major = 0, minor = 0;  ///< compute capability
  std::size_t memory_bytes = 0;
};

/// What this build and this machine have between them.
struct GpuSurvey {
  bool built = false;                           ///< with the GPU backend
  int runtime_version = 0, driver_version = 0;  ///< 13010 is CUDA 13.1; 0: none
  std::vector<Gpu> gpus;                        ///< by index
  /// Why no GPU can be used, and the remedy; empty where one can.
  std::string reason;
};
/// Asks the driver, where there is one; takes no GPU. Never throws.
[[nodiscard]] GpuSurvey find_gpus();

/// 13010 as `13.1`.
[[nodiscard]] std::string cuda_version_text(int version);

}  // namespace ronda
