#pragma once
#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include <ronda/core/device_context.hpp>
#include <ronda/core/stream.hpp>

namespace ronda::cuda {

struct Destroy {
  void operator()(cudaStream_t stream) const noexcept { cudaStreamDestroy(stream); }
  void operator()(cudaEvent_t event) const noexcept { cudaEventDestroy(event); }
};
using StreamHandle = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, Destroy>;
using EventHandle = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, Destroy>;

/// A stream of one GPU. Its events come from a ring that is made once: recording allocates nothing. An event whose
/// place in the ring has been taken again is waited for with its successor, which comes later in the same stream. While
/// the stream is recorded into a graph its events come from another ring: streams of the same recording can wait for
/// them, and nobody else, since CUDA may not be asked of them.
class GpuStream final : public Stream, public Completion {
 public:
  GpuStream(int device, StreamPriority priority);

  [[nodiscard]] Device device() const noexcept override { return {DeviceKind::cuda, device_}; }
  Event record() override;
  /// The stream waits, not the host, where the event is a GPU's; for any other the host waits.
  void wait(const Event& event) override;
  void synchronize() override;
  [[nodiscard]] bool recording() const override;
  [[nodiscard]] int threads() const noexcept override { return 1; }

  // These may be asked by any thread.
  bool poll(std::uint64_t ticket) override;
  void wait(std::uint64_t ticket) override;
  bool hold(Stream& stream, std::uint64_t ticket) override;

  [[nodiscard]] cudaStream_t handle() const noexcept { return handle_.get(); }
  /// How often the host has waited for this stream: 0 between the begin and the end of a step.
  [[nodiscard]] std::uint64_t host_waits() const noexcept { return host_waits_; }

 private:
  void note_done(std::uint64_t ticket) noexcept;
  [[nodiscard]] cudaEvent_t event_of(std::uint64_t ticket) const noexcept;

  int device_;
  StreamHandle handle_;
  std::vector<EventHandle> ring_, captured_ring_;
  std::uint64_t recorded_ = 0;          ///< tickets: 1 is the first event
  std::uint64_t captured_ = 0;          ///< those in recordings, which count apart
  std::atomic<std::uint64_t> done_{0};  ///< the highest that is known to be
  std::atomic<std::uint64_t> host_waits_{0};
};

/// The CUDA stream behind `stream`. Throws LogicError where that is not a GPU's.
[[nodiscard]] GpuStream& gpu_stream(Stream& stream);
[[nodiscard]] inline cudaStream_t handle_of(Stream& stream) { return gpu_stream(stream).handle(); }

}  // namespace ronda::cuda
