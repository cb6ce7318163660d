#include <ronda/runtime/core/cuda/check.hpp>
#include <ronda/runtime/core/cuda/stream.hpp>
#include <ronda/runtime/core/error.hpp>

#include <algorithm>

namespace ronda::cuda {
namespace {

constexpr std::size_t events_in_flight = 256;  ///< more than a step records: two events a bucket, and a few

}  // namespace

GpuStream::GpuStream(int device, StreamPriority priority) : device_(device), ring_(events_in_flight) {
  check(cudaSetDevice(device), "cudaSetDevice");
  int least = 0, greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
  cudaStream_t stream = nullptr;
  check(
      cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority == StreamPriority::high ? greatest : least),
      "cudaStreamCreateWithPriority");
  handle_.reset(stream);
  for (auto& place : ring_) {
    cudaEvent_t event = nullptr;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
    place.reset(event);
  }
}

cudaEvent_t GpuStream::event_of(std::uint64_t ticket) const noexcept { return ring_[ticket % ring_.size()].get(); }

Event GpuStream::record() {
  ++recorded_;
  check(cudaEventRecord(event_of(recorded_), handle()), "cudaEventRecord");
  return {*this, recorded_};
}

void GpuStream::wait(const Event& event) {
  if (event.hold(*this)) return;
  ++host_waits_;
  event.wait();
}

void GpuStream::synchronize() {
  ++host_waits_;
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
  const cudaError_t status = cudaEventQuery(event_of(ticket));
  if (status == cudaErrorNotReady) return false;
  check(status, "cudaEventQuery");
  note_done(ticket);
  return true;
}

void GpuStream::wait(std::uint64_t ticket) {
  if (ticket <= done_) return;
  ++host_waits_;
  check(cudaEventSynchronize(event_of(ticket)), "cudaEventSynchronize");
  note_done(ticket);
}

bool GpuStream::hold(Stream& stream, std::uint64_t ticket) {
  if (stream.device().kind != DeviceKind::cuda) return false;
  if (&stream == this) return true;  // a stream is in order
  check(cudaStreamWaitEvent(handle_of(stream), event_of(ticket)), "cudaStreamWaitEvent");
  return true;
}

GpuStream& gpu_stream(Stream& stream) {
  auto* gpu = dynamic_cast<GpuStream*>(&stream);
  if (gpu == nullptr) throw LogicError("work for a GPU was given a stream of " + stream.device().text());
  return *gpu;
}

}  // namespace ronda::cuda
