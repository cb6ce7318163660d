#pragma once
#include <cstdint>

namespace ronda {

class Stream;

/// Something that finishes once for every ticket: a started collective, work on a device.
class Completion {
 public:
  /// True when the work of `ticket` is done; makes progress where somebody must. Throws the error the work ended with,
  /// every time it is asked (errors are sticky).
  virtual bool poll(std::uint64_t ticket) = 0;
  /// Returns when the work of `ticket` is done; throws as `poll` does.
  virtual void wait(std::uint64_t ticket) = 0;
  /// Has the device itself hold back what `stream` is given from now on, until the work of `ticket` is done, and
  /// returns at once; false where it cannot, and the host has to wait instead.
  virtual bool hold(Stream& /*stream*/, std::uint64_t /*ticket*/) { return false; }

 protected:
  ~Completion() = default;
};

/// A point in time to wait for. A small value; it does not own what it refers to, which must outlive it. A default one
/// has already happened.
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
