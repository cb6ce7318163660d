#pragma once
#include <cstdint>

namespace ronda {

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

}  // namespace ronda
