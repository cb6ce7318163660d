#pragma once
#include <cstdint>
#include <string>

namespace ronda {

enum class DeviceKind : std::uint8_t { cpu, cuda };

/// The device that holds a tensor or runs an operation.
struct Device {
  DeviceKind kind = DeviceKind::cpu;
  int index = 0;

  [[nodiscard]] std::string text() const { return kind == DeviceKind::cpu ? "cpu" : "cuda:" + std::to_string(index); }
  bool operator==(const Device&) const = default;
};

class Stream;

/// The source of events: work that finishes once per ticket, such as a started collective or work on a device.
class Completion {
 public:
  /// True when the work of `ticket` is done; makes progress if no other thread does. Throws the error the work ended
  /// with, on every call (errors are sticky).
  virtual bool poll(std::uint64_t ticket) = 0;
  /// Returns when the work of `ticket` is done; throws as `poll` does.
  virtual void wait(std::uint64_t ticket) = 0;
  /// Makes the device delay later work of `stream` until the work of `ticket` is done, and returns at once. False if
  /// the device cannot: the host then has to wait.
  virtual bool hold(Stream& /*stream*/, std::uint64_t /*ticket*/) { return false; }

 protected:
  ~Completion() = default;
};

/// A point in time to wait for. A small value: it does not own the Completion, which must outlive it. A
/// default-constructed event has already happened.
class Event {
 public:
  Event() = default;
  Event(Completion& completion, std::uint64_t ticket) : completion_(&completion), ticket_(ticket) {}

  [[nodiscard]] bool ready() const { return completion_ == nullptr || completion_->poll(ticket_); }
  void wait() const {
    if (completion_ != nullptr) completion_->wait(ticket_);
  }
  /// See Completion::hold.
  [[nodiscard]] bool hold(Stream& stream) const { return completion_ == nullptr || completion_->hold(stream, ticket_); }

 private:
  Completion* completion_ = nullptr;
  std::uint64_t ticket_ = 0;
};

/// An ordered queue of work on one device. Work is issued by the functions that take a stream.
class Stream {
 public:
  virtual ~Stream() = default;
  [[nodiscard]] virtual Device device() const noexcept = 0;
  /// The point after everything issued so far.
  virtual Event record() = 0;
  /// Later work on this stream starts after `event`. Blocks the stream, not the host, if the device supports it.
  virtual void wait(const Event& event) = 0;
  /// Returns when everything issued so far is done; throws the error it ended with.
  virtual void synchronize() = 0;
  /// Whether work is recorded, to be replayed as a graph, instead of run: do not poll its events then.
  [[nodiscard]] virtual bool recording() const { return false; }
  /// Host threads that an operation on this stream may use (1 or more); on a GPU, 1.
  [[nodiscard]] virtual int threads() const noexcept = 0;
};

/// Work on the CPU is done when its call returns, so events of this stream have already happened. `wait` blocks until
/// another stream's event happens (which lets an inline engine make progress).
class CpuStream final : public Stream {
 public:
  explicit CpuStream(int threads = 1) : threads_(threads) {}
  [[nodiscard]] Device device() const noexcept override { return {}; }
  Event record() override { return {}; }
  void wait(const Event& event) override { event.wait(); }
  void synchronize() override {}
  [[nodiscard]] int threads() const noexcept override { return threads_; }

 private:
  int threads_;
};

}  // namespace ronda
