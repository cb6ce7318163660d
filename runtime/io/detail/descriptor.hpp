#pragma once
#include <unistd.h>

#include <utility>

namespace ronda {

/// An open file; closed with this object.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) noexcept : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() { close(); }

  [[nodiscard]] int number() const noexcept { return number_; }
  [[nodiscard]] bool open() const noexcept { return number_ >= 0; }
  /// What close(2) returns, 0 where nothing was open: NFS reports a full disk only here.
  int close() noexcept { return open() ? ::close(std::exchange(number_, -1)) : 0; }

 private:
  int number_;
};

}  // namespace ronda
