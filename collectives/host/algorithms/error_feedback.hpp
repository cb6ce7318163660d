#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <ronda/collectives/host/wire_format.hpp>
#include <ronda/core/buffer.hpp>
#include <ronda/core/state.hpp>
#include <ronda/core/tensor.hpp>

namespace ronda {

/// What an algorithm that keeps what it loses carries from one run to the next: what rounding took from each number,
/// which is added to it the next time (see DirectExchange for the sources), and how many runs there were, so that each
/// has noise of its own.
class ErrorFeedback {
 public:
  ErrorFeedback() = default;
  /// @param elements  whose losses are kept, 0 where nothing is lost for good
  explicit ErrorFeedback(std::size_t elements) : lost_(Buffer::host(elements * sizeof(float))) {}

  void begin_run() noexcept { ++runs_; }
  /// Of the element at this place and those behind it; null where none are kept.
  [[nodiscard]] float* lost(std::size_t place) const noexcept {
    return lost_.bytes() == 0 ? nullptr : reinterpret_cast<float*>(lost_.data()) + place;
  }
  /// This run's, for whoever rounds as `rounder`.
  [[nodiscard]] Noise noise(const Noise& all, int rounder) const noexcept {
    return all.at(static_cast<std::uint64_t>(runs_)).at(static_cast<std::uint64_t>(rounder));
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return lost_.bytes(); }

  void visit(const std::string& name, StateVisitor& visitor) {
    if (lost_.bytes() == 0) return;
    const std::span lost(reinterpret_cast<float*>(lost_.data()), lost_.bytes() / sizeof(float));
    visitor.visit({name + ".residual", Tensor(lost), Scope::per_rank});
    visitor.visit({name + ".runs", Tensor(std::span(&runs_, 1)), Scope::per_rank});  // not all own a part
  }

 private:
  Buffer lost_;
  std::int64_t runs_ = 0;
};

}  // namespace ronda
