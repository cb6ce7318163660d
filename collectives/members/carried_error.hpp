#pragma once
#include <optional>
#include <string>
#include <string_view>

#include <ronda/core/error.hpp>

namespace ronda {

/// An error of one rank as a text that can travel to the others, to be thrown there as what it was.
class CarriedError {
 public:
  explicit CarriedError(const Error& error) : kind_(kind_of(error)), status_(error.status()), why_(error.message()) {}

  /// Of the exception that is being handled. @param place  where memory ran out, if it did
  [[nodiscard]] static CarriedError current(std::string_view place);
  /// Nothing where `text` is no failure's: what a rank says that has none begins with none of the characters below 16.
  [[nodiscard]] static std::optional<CarriedError> parse(std::string_view text);
  [[nodiscard]] std::string text() const;

  [[nodiscard]] const Message& why() const noexcept { return why_; }
  /// @param who     put before the text: `rank 2 on node17: `, or nothing where all ranks have the same
  /// @param agreed  all ranks of the world throw this here: see Error::agreed
  [[noreturn]] void raise(const std::string& who, bool agreed) const;

 private:
  enum class Kind : char { error = 1, input, resource, device, communication, logic };
  [[nodiscard]] static Kind kind_of(const Error& error) noexcept;
  CarriedError(Kind kind, ExitStatus status, Message why) : kind_(kind), status_(status), why_(std::move(why)) {}

  Kind kind_;
  ExitStatus status_ = ExitStatus::failed;
  Message why_;
};

}  // namespace ronda
