#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include <ronda/runtime/core/buffer.hpp>
#include <ronda/runtime/core/state.hpp>
#include <ronda/runtime/files/safetensors.hpp>

namespace ronda {

/// Collects the states that it is shown.
class StateList final : public StateVisitor {
 public:
  void visit(const State& state) override { states_.push_back(state); }
  [[nodiscard]] const std::vector<State>& states() const noexcept { return states_; }

 private:
  std::vector<State> states_;
};

/// Whole numbers that all ranks have alike: they go into the manifest, and are no part of any share.
[[nodiscard]] bool is_counter(const State& state) noexcept;

/// What `rank` of `ranks` writes: its own of everything that is per rank, and of what all have alike a share, so that
/// the shares have about as many bytes (the largest first, each to the rank that has least). The same states on every
/// rank give shares that together have each state once. Throws LogicError for states that cannot be written: of
/// another type than float32 (counters apart), two of one name, sharded.
[[nodiscard]] std::vector<State> share_of(std::span<const State> states, int rank, int ranks);

/// A copy in memory of some states, which training may change while the copy is written. Not thread-safe: taken by one
/// thread, then read by another.
class Snapshot {
 public:
  /// Takes the memory. The states' tensors outlive this object. Throws ResourceError.
  explicit Snapshot(std::vector<State> states);

  /// Copies them, as they lie in memory. Allocates nothing.
  void take() noexcept;
  /// Copies them back.
  void give_back() const noexcept;
  /// The copies, under the states' names.
  [[nodiscard]] std::span<const State> copies() const noexcept { return copies_; }
  /// The copies in file layout.
  [[nodiscard]] std::vector<NamedTensor> tensors() const;

  [[nodiscard]] std::span<const State> states() const noexcept { return states_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return memory_.bytes(); }

 private:
  std::vector<State> states_, copies_;
  Buffer memory_;
};

}  // namespace ronda
