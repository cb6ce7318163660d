#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ronda/core/buffer.hpp>
#include <ronda/core/stream.hpp>
#include <ronda/core/tensor.hpp>

namespace ronda {

/// Hashes pieces of device memory on the device; only 8 bytes per piece are copied to the host. Compares the contents
/// of devices with each other; not for security, and different from the processor's Hash.
///
/// The hash of a piece is the sum, modulo 2^64, of its 4-byte words, each mixed with its position. So the bits do not
/// depend on the order of addition. One different word always changes the hash; several do, except with probability
/// 2^-64.
class DeviceHash {
 public:
  virtual ~DeviceHash() = default;
  /// Hashes the pieces after all work issued to `stream` before. The host waits. Allocates nothing.
  /// @param hashes  one for each piece, in their order
  virtual void run(std::span<std::uint64_t> hashes, Stream& stream) = 0;
};

enum class StreamPriority : std::uint8_t { usual, high };

/// Recorded work of a stream, which can be issued again with one call.
class Recording {
 public:
  virtual ~Recording() = default;
  virtual void replay(Stream& stream) = 0;
};

/// One device of this process: its memory, streams and copies. Outlives its streams and buffers.
///
/// Errors: ResourceError if memory runs out, DeviceError for any other error of the device; both name the call.
class DeviceContext {
 public:
  virtual ~DeviceContext() = default;
  [[nodiscard]] virtual Device device() const noexcept = 0;
  /// `NVIDIA H200 (compute capability 9.0, 139.7 GiB)`: for the plan and for messages.
  [[nodiscard]] virtual std::string name() const = 0;
  /// A name that is unique over all hosts: the UUID of a GPU.
  [[nodiscard]] virtual std::string identity() const = 0;
  /// Bytes of device memory that are not allocated by any process.
  [[nodiscard]] virtual std::size_t free_bytes() = 0;
  /// Makes this the current device of the calling thread. The functions of this class and of its streams do so
  /// themselves; call it before calling a device library directly.
  virtual void enter() {}
  virtual std::unique_ptr<Stream> make_stream(StreamPriority priority) = 0;
  /// Zeroed device memory.
  virtual Buffer allocate(std::size_t bytes) = 0;
  /// Zeroed, pinned host memory: the device copies from and to it asynchronously.
  virtual Buffer allocate_staging(std::size_t bytes) = 0;
  /// Pins host memory, as long as the returned object lives.
  virtual std::shared_ptr<const void> pin(std::span<std::byte> memory) = 0;
  /// Writes zeros to device memory, in the order of `stream`.
  virtual void clear(void* memory, std::size_t bytes, Stream& stream) = 0;
  /// Copies between any two places, in the order of `stream`. Device and pinned memory must stay valid and unchanged
  /// until the copy is done. With other host memory the copy is done when the call returns.
  virtual void copy(const void* from, void* to, std::size_t bytes, Stream& stream) = 0;
  /// to[i] = from[i] + more[i], or from[i] if `more` is null, in device memory and in the order of `stream`. Any of the
  /// three may be the same memory. Tensors of one shape and layout: `from` and `to` of any Number type, `more` float32;
  /// added in float32, then rounded.
  virtual void add(const Tensor& from, const float* more, const Tensor& to, Stream& stream) = 0;
  /// Hashes pieces of device memory, each a whole number of 4-byte words. The pieces outlive the returned object.
  /// Throws LogicError for the CPU: the host hashes its own memory.
  virtual std::unique_ptr<DeviceHash> make_hash(std::span<const std::span<const std::byte>> pieces);
  /// Calls `work` once, and records the work it issues to `stream` instead of running it. `work` must not wait, and all
  /// memory that it uses must stay at its address. Null if the device cannot record. Exceptions of `work` are passed
  /// on.
  virtual std::unique_ptr<Recording> record(Stream& /*stream*/, const std::function<void()>& /*work*/) {
    return nullptr;
  }
};

/// The processor, with `threads` threads per stream.
std::unique_ptr<DeviceContext> make_cpu_context(int threads);
/// GPU `index`. Throws InputError, with the reason from `find_gpus`, if no GPU can be used.
std::unique_ptr<DeviceContext> make_cuda_context(int index);

/// Copies between the host and `device`, or within it, after all work issued to the device before, and returns when the
/// copy is done. For setup and files (hashes, initial values), not for the training step.
void copy_now(const void* from, void* to, std::size_t bytes, Device device);

struct Gpu {
  std::string name;          ///< the driver's name for it
  int major = 0, minor = 0;  ///< compute capability
  std::size_t memory_bytes = 0;
};

/// The GPU support of this build and the GPUs of this machine.
struct GpuSurvey {
  bool built = false;                           ///< with the GPU backend
  int runtime_version = 0, driver_version = 0;  ///< 13010 is CUDA 13.1; 0: none
  std::vector<Gpu> gpus;                        ///< by index
  /// Why no GPU can be used, and the remedy; empty if one can be used.
  std::string reason;
};
/// Queries the driver, if installed, without initialising a GPU. Never throws.
[[nodiscard]] GpuSurvey find_gpus();

/// 13010 as `13.1`.
[[nodiscard]] std::string cuda_version_text(int version);

/// A device to compute on, and the stream for all its work.
struct ComputeDevice {
  std::shared_ptr<DeviceContext> context;
  std::shared_ptr<Stream> stream;

  static ComputeDevice on(std::shared_ptr<DeviceContext> context) {
    std::shared_ptr<Stream> stream = context->make_stream(StreamPriority::usual);
    return {std::move(context), std::move(stream)};
  }
  /// The processor, with one thread.
  static ComputeDevice processor() { return on(make_cpu_context(1)); }
};

/// Makes tensors readable on the host.
class HostCopy {
 public:
  explicit HostCopy(ComputeDevice device) : device_(std::move(device)) {}
  /// `tensor` itself if it is in host memory; otherwise a copy, valid until the next call, made after all work of the
  /// device's stream. The host waits.
  [[nodiscard]] Tensor of(const Tensor& tensor);

 private:
  ComputeDevice device_;
  Buffer memory_;
};

}  // namespace ronda
