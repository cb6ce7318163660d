#pragma once
#include <concepts>
#include <stdexcept>
#include <string>

namespace ronda {

/// Exit status of a process; scripts depend on the numbers.
enum class ExitStatus : int { done = 0, failed = 1, bad_input = 2, stopped_resumable = 75 };

/// Base of all exceptions that Ronda throws. The text gives the expected and the actual value, the place, and the
/// remedy. It names an option by its field after a dot, `.batch_size = 64`, as in a program; applications replace this
/// by the name of their command-line option.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& what, ExitStatus status = ExitStatus::failed)
      : std::runtime_error(what), status_(status) {}

  [[nodiscard]] ExitStatus status() const noexcept { return status_; }

  /// True if every rank throws this same error at the same place, so that no rank waits for another and only one has to
  /// print it (see `agree`).
  [[nodiscard]] bool agreed() const noexcept { return agreed_; }
  void set_agreed() noexcept { agreed_ = true; }

 private:
  ExitStatus status_;
  bool agreed_ = false;
};

/// Wrong input by the user: an unknown option, a missing or damaged file, sizes that do not match. Status 2.
class InputError : public Error {
 public:
  explicit InputError(const std::string& what) : Error(what, ExitStatus::bad_input) {}
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

/// The same error, marked as thrown by all ranks: see Error::agreed.
template <std::derived_from<Error> E>
[[nodiscard]] E as_agreed(E error) {
  error.set_agreed();
  return error;
}

}  // namespace ronda
