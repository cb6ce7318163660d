#include <ronda/core/cuda/check.hpp>
#include <ronda/core/cuda/stream.hpp>
#include <ronda/core/error.hpp>

#include <algorithm>

namespace ronda::cuda {
namespace {

/// Two of each collective that is watched, which are 256 at most, and more than a step records.
constexpr std::size_t events_in_flight = 1024, captured_events_in_flight = 256;
constexpr std::uint64_t captured_ticket = std::uint64_t{1} << 63U;  ///< the bit that tells an event of a recording

std::vector<EventHandle> make_ring(std::size_t size) {
  std::vector<EventHandle> ring(size);
  for (auto& place : ring) {
    cudaEvent_t event = nullptr;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
    place.reset(event);
  }
  return ring;
}

void require_asked_after_recording(std::uint64_t ticket) {
  if ((ticket & captured_ticket) != 0) throw LogicError("the host asked for an event of a recording");
}

}  // namespace

GpuStream::GpuStream(int device, StreamPriority priority) : device_(device) {
  enter(device);
  int least = 0, greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
  cudaStream_t stream = nullptr;
  check(
      cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority == StreamPriority::high ? greatest : least),
      "cudaStreamCreateWithPriority");
  handle_.reset(stream);
  ring_ = make_ring(events_in_flight);
  captured_ring_ = make_ring(captured_events_in_flight);
}

cudaEvent_t GpuStream::event_of(std::uint64_t ticket) const noexcept {
  const std::vector<EventHandle>& ring = (ticket & captured_ticket) != 0 ? captured_ring_ : ring_;
  return ring[(ticket & ~captured_ticket) % ring.size()].get();
}

Event GpuStream::record() {
  enter(device_);
  const std::uint64_t ticket = recording() ? captured_ticket | ++captured_ : ++recorded_;
  check(cudaEventRecord(event_of(ticket), handle()), "cudaEventRecord");
  return {*this, ticket};
}

void GpuStream::wait(const Event& event) {
  if (event.hold(*this)) return;
  ++host_waits_;
  event.wait();
}

void GpuStream::synchronize() {
  ++host_waits_;
  enter(device_);
  check(cudaStreamSynchronize(handle()), "cudaStreamSynchronize");
  note_done(recorded_);
}

void GpuStream::note_done(std::uint64_t ticket) noexcept {
  std::uint64_t before = done_.load();
  while (before < ticket && !done_.compare_exchange_weak(before, ticket)) {
  }
}

bool GpuStream::recording() const {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(handle(), &status), "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}

bool GpuStream::poll(std::uint64_t ticket) {
  if (ticket <= done_) return true;
  require_asked_after_recording(ticket);
  enter(device_);
  const cudaError_t status = cudaEventQuery(event_of(ticket));
  if (status == cudaErrorNotReady) {
    static_cast<void>(cudaGetLastError());  // otherwise a later launch by this thread would report it as its own
    return false;
  }
  check(status, "cudaEventQuery");
  note_done(ticket);
  return true;
}

void GpuStream::wait(std::uint64_t ticket) {
  if (ticket <= done_) return;
  require_asked_after_recording(ticket);
  enter(device_);
  ++host_waits_;
  check(cudaEventSynchronize(event_of(ticket)), "cudaEventSynchronize");
  note_done(ticket);
}

bool GpuStream::hold(Stream& stream, std::uint64_t ticket) {
  if (stream.device().kind != DeviceKind::cuda) return false;
  if (&stream == this) return true;  // a stream is in order
  enter(device_);
  check(cudaStreamWaitEvent(handle_of(stream), event_of(ticket)), "cudaStreamWaitEvent");
  return true;
}

GpuStream& gpu_stream(Stream& stream) {
  auto* gpu = dynamic_cast<GpuStream*>(&stream);
  if (gpu == nullptr) throw LogicError("work for a GPU was given a stream of " + stream.device().text());
  return *gpu;
}

}  // namespace ronda::cuda
