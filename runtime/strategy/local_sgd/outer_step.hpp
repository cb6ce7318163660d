#pragma once
#include <cstddef>

#include <ronda/core/buffer.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/runtime/strategy/local_sgd/local_sgd.hpp>

namespace ronda {

/// The parameters that ranks with steps of their own share, and the outer optimizer that changes them: see LocalSteps.
/// Element by element, so that ranks with the same sums have the same bits.
class OuterStep {
 public:
  /// Throws ResourceError.
  /// @param count  elements of the parameters' arena
  OuterStep(const LocalSgd& options, std::size_t ranks, std::size_t count);

  /// The shared parameters become these.
  void begin_with(const float* values);
  /// `changes` become the shared parameters minus `values`.
  void measure(const float* values, float* changes, Range part, int threads) const;
  /// From the sum of all ranks' changes come new shared parameters, which `values` become.
  void apply(const float* changes, float* values, Range part, int threads);
  /// The same, where the rank has gone on from `started`, its values when the changes were measured: the steps since
  /// then stay on top.
  void apply_late(const float* changes, const float* started, float* values, Range part, int threads);

  /// Null where the outer optimizer has none.
  [[nodiscard]] std::byte* momentum() noexcept { return momentum_.bytes() == 0 ? nullptr : momentum_.data(); }
  [[nodiscard]] std::size_t memory() const noexcept { return shared_.bytes() + momentum_.bytes(); }

 private:
  void take(const float* changes, Range part, int threads);
  [[nodiscard]] float* shared() const noexcept { return reinterpret_cast<float*>(shared_.data()); }

  float ranks_, rate_, by_momentum_;
  std::size_t count_;
  Buffer shared_, momentum_;
};

}  // namespace ronda
