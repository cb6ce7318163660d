#pragma once
#include <concepts>
#include <stdexcept>
#include <string>

namespace ronda {

/// What a process ends with; scripts rest on the numbers.
enum class ExitStatus : int { done = 0, failed = 1, bad_input = 2, stopped_resumable = 75 };

/// Base of everything that Ronda throws. The text says what was expected, what was found, where, and the remedy. It
/// names an option by its field behind a point, `.batch_size = 64`, as a program gives it; an application says that by
/// the name on its command line.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& what, ExitStatus status = ExitStatus::failed)
      : std::runtime_error(what), status_(status) {}

  [[nodiscard]] ExitStatus status() const noexcept { return status_; }

  /// True where every rank of the world throws this same error at the same place, so that nobody waits for anybody and
  /// one rank alone has to print it (see `agree`).
  [[nodiscard]] bool agreed() const noexcept { return agreed_; }
  void set_agreed() noexcept { agreed_ = true; }

 private:
  ExitStatus status_;
  bool agreed_ = false;
};

/// What a person gave cannot work: an unknown option, a missing or damaged file, sizes that do not fit. Status 2.
class InputError : public Error {
 public:
  explicit InputError(const std::string& what) : Error(what, ExitStatus::bad_input) {}
};

/// The launcher, MPI or another rank did not do its part. Status 1.
class CommunicationError : public Error {
 public:
  using Error::Error;
};

/// Memory, shared memory or disk ran out. Status 1.
class ResourceError : public Error {
 public:
  using Error::Error;
};

/// A device reported an error: a kernel that failed, a driver that does not fit. Status 1.
class DeviceError : public Error {
 public:
  using Error::Error;
};

/// A use of the library that its documentation forbids; a bug in the calling program. Status 1.
class LogicError : public Error {
 public:
  using Error::Error;
};

/// The same error as one that all ranks throw: see Error::agreed.
template <std::derived_from<Error> E>
[[nodiscard]] E as_agreed(E error) {
  error.set_agreed();
  return error;
}

}  // namespace ronda
