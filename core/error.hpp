#pragma once
#include <concepts>
#include <stdexcept>
#include <string>
#include <utility>

#include <ronda/core/message.hpp>

namespace ronda {

/// Exit status of a process; scripts depend on the numbers.
enum class ExitStatus : int { done = 0, failed = 1, bad_input = 2, stopped_resumable = 75 };

/// Base of all exceptions that Ronda throws. The message gives the expected and the actual value, the place, and the
/// remedy. `what()` names options as a program does, `.batch_size = 64`; applications show `message()` with the names
/// of their command line (Message::text_with).
class Error : public std::runtime_error {
 public:
  explicit Error(Message message, ExitStatus status = ExitStatus::failed)
      : std::runtime_error(message.text()), message_(std::move(message)), status_(status) {}

  [[nodiscard]] const Message& message() const noexcept { return message_; }
  [[nodiscard]] ExitStatus status() const noexcept { return status_; }

  /// True if every rank throws this same error at the same place, so that no rank waits for another and only one has to
  /// print it (see `agree`).
  [[nodiscard]] bool agreed() const noexcept { return agreed_; }
  void set_agreed() noexcept { agreed_ = true; }

 private:
  Message message_;
  ExitStatus status_;
  bool agreed_ = false;
};

/// Wrong input by the user: an unknown option, a missing or damaged file, sizes that do not match. Status 2.
class InputError : public Error {
 public:
  explicit InputError(Message message) : Error(std::move(message), ExitStatus::bad_input) {}
};

/// The launcher, MPI or another rank failed. Status 1.
class CommunicationError : public Error {
 public:
  using Error::Error;
};

/// Memory, shared memory or disk ran out. Status 1.
class ResourceError : public Error {
 public:
  using Error::Error;
};

/// A device reported an error: a failed kernel, an incompatible driver. Status 1.
class DeviceError : public Error {
 public:
  using Error::Error;
};

/// A use of the library that its documentation forbids; a bug in the calling program. Status 1.
class LogicError : public Error {
 public:
  using Error::Error;
};

/// The message of an Error, or the text of any other exception.
[[nodiscard]] inline Message message_of(const std::exception& error) {
  const auto* const ours = dynamic_cast<const Error*>(&error);
  return ours == nullptr ? Message(error.what()) : ours->message();
}

/// The same error, marked as thrown by all ranks: see Error::agreed.
template <std::derived_from<Error> E>
[[nodiscard]] E as_agreed(E error) {
  error.set_agreed();
  return error;
}

}  // namespace ronda
