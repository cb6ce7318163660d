#pragma once
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <utility>

#include <ronda/collectives/host/task.hpp>
#include <ronda/collectives/host/transport/traffic.hpp>

namespace ronda {

class Request;

/// Longer data is sent in several messages: MPI counts with 31 bits.
inline constexpr std::size_t longest_message = std::size_t{1} << 30;

/// A message of up to so many bytes goes off at once. Before a longer one MPI asks the receiver (over TCP, Open MPI
/// from 64 KiB on), and question and answer stand in line behind the data under way. Data that is cut into short
/// messages, some of them under way at a time, keeps a link busy in both directions.
inline constexpr std::size_t short_message_bytes = std::size_t{60} << 10;

/// How ranks pass messages: all that an algorithm knows of the world. Messages between two ranks arrive in the order in
/// which they were sent, and those of two transports never mix.
class Transport : public Traffic {
 public:
  virtual ~Transport() = default;
  [[nodiscard]] virtual int rank() const noexcept = 0;
  [[nodiscard]] virtual int size() const noexcept = 0;

  /// What rank `rank` of this transport is called in the world.
  [[nodiscard]] virtual int global_rank(int rank) const noexcept { return rank; }

  /// Starts to send; the memory may be read, but not written, until the request is done.
  [[nodiscard]] virtual Request send(int to, std::span<const std::byte> message) = 0;
  /// Starts to receive a message of just this length; the memory is not to be touched until the request is done.
  [[nodiscard]] virtual Request receive(int from, std::span<std::byte> message) = 0;

 protected:
  friend class Request;
  /// What the transport knows a message by.
  struct Handle {
    std::uint64_t id = 0;
    std::optional<std::size_t> expected = {};  ///< bytes that are to come; none: it is sent
  };
  /// True when it is done; throws CommunicationError where it failed, or had another length than expected. Not called
  /// again after either.
  virtual bool test(Handle& handle) = 0;
  /// Nobody will ask for this message any more: a task was given up. `take_back` deals with what it left under way.
  virtual void abandon(Handle handle) noexcept = 0;
};

/// A message under way. A default one is done.
class Request final : public Awaitable {
 public:
  Request() = default;
  /// @param peer  whom it goes to or comes from
  Request(Transport& transport, Transport::Handle handle, int peer)
      : transport_(&transport), handle_(handle), peer_(peer) {}
  Request(Request&& other) noexcept { swap(other); }
  Request& operator=(Request&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Request() {
    if (transport_ != nullptr) transport_->abandon(handle_);
  }

  bool arrived() noexcept override {
    if (transport_ == nullptr) return true;
    try {
      if (!transport_->test(handle_)) return false;
    } catch (...) {
      error_ = std::current_exception();
    }
    transport_ = nullptr;
    return true;
  }
  void finish() override {
    if (error_) std::rethrow_exception(error_);
  }
  [[nodiscard]] std::vector<int> missing() override {
    if (transport_ == nullptr) return {};
    return {transport_->global_rank(peer_)};
  }

 private:
  void swap(Request& other) noexcept {
    std::swap(transport_, other.transport_);
    std::swap(handle_, other.handle_);
    std::swap(peer_, other.peer_);
    std::swap(error_, other.error_);
  }

  Transport* transport_ = nullptr;
  Transport::Handle handle_;
  int peer_ = 0;
  std::exception_ptr error_;
};

}  // namespace ronda
