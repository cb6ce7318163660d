#pragma once
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <ronda/runtime/core/device_context.hpp>
#include <ronda/runtime/core/tensor.hpp>

namespace ronda::test {

/// A queue of work on a thread of its own, which is as slow as one likes: what does not wait for it finds nothing done.
class FakeStream final : public Stream, public Completion {
 public:
  explicit FakeStream(Device device) : device_(device), thread_([this] { run(); }) {}
  FakeStream(const FakeStream&) = delete;
  ~FakeStream() override;

  void queue(std::function<void()> work);

  [[nodiscard]] Device device() const noexcept override { return device_; }
  Event record() override;
  void wait(const Event& event) override;
  void synchronize() override { wait(queued_); }
  [[nodiscard]] bool recording() const override { return recording_; }
  [[nodiscard]] int threads() const noexcept override { return 1; }

  bool poll(std::uint64_t ticket) override;
  void wait(std::uint64_t ticket) override;
  bool hold(Stream& stream, std::uint64_t ticket) override;

  void set_recording(bool recording) noexcept { recording_ = recording; }
  /// Work that is not done as long as this is not taken back.
  void hang(bool hangs);

 private:
  void run();

  Device device_;
  std::mutex door_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  std::uint64_t queued_ = 0, done_ = 0;
  bool recording_ = false, stopping_ = false, hangs_ = false;
  std::thread thread_;  ///< last: it uses all of the above
};

/// A device whose memory is the host's, though nobody else may look at it, and whose work is done late.
class FakeDevice final : public DeviceContext {
 public:
  explicit FakeDevice(std::string identity) : identity_(std::move(identity)) {}

  [[nodiscard]] Device device() const noexcept override { return {DeviceKind::cuda, 0}; }
  [[nodiscard]] std::string name() const override { return "fake"; }
  [[nodiscard]] std::string identity() const override { return identity_; }
  std::unique_ptr<Stream> make_stream(StreamPriority priority) override;
  Buffer allocate(std::size_t bytes) override;
  Buffer allocate_staging(std::size_t bytes) override;
  std::shared_ptr<const void> pin(std::span<std::byte> memory) override;
  void clear(void* memory, std::size_t bytes, Stream& stream) override;
  void copy(const void* from, void* to, std::size_t bytes, Stream& stream) override;

  int pinned = 0;             ///< pieces of memory that are
  bool refuses_pins = false;  ///< as where the system limits them
  std::size_t bytes_copied = 0;
  int high_priority_streams = 0;

 private:
  std::string identity_;
};

/// `count` floats of `buffer`, on its device.
[[nodiscard]] Tensor floats_in(const Buffer& buffer, std::size_t count, std::size_t first = 0);

}  // namespace ronda::test
