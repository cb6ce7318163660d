#pragma once
#include <ronda/core/device.hpp>
#include <ronda/core/event.hpp>

namespace ronda {

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
