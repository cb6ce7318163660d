#pragma once
#include <cstdint>

namespace ronda {

/// Something through which other ranks still reach a collective's memory after it was given up: messages under way, a
/// place where ranks meet.
class Traffic {
 public:
  /// What is under way.
  struct Open {
    bool sends = false;     ///< memory may be read
    bool receives = false;  ///< memory may be written to
    [[nodiscard]] bool nothing() const noexcept { return !sends && !receives; }
    Open& operator|=(const Open& other) noexcept {
      sends |= other.sends;
      receives |= other.receives;
      return *this;
    }
  };
  /// Looks at all of it anew.
  [[nodiscard]] virtual Open open() noexcept = 0;
  /// Nothing new is started any more: takes back what can be, which are the receives that no message has come for.
  virtual void take_back() noexcept = 0;
  /// Bytes of the messages that this rank has sent through it so far.
  [[nodiscard]] virtual std::uint64_t sent_bytes() const noexcept { return 0; }

 protected:
  ~Traffic() = default;
};

}  // namespace ronda
