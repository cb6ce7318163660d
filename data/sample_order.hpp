#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace ronda {

/// The order of the samples in an epoch. It depends only on (seed, epoch), so every rank computes it without
/// communication, it is the same for any number of ranks, and a resumed run finds its position.
class SampleOrder {
 public:
  /// @param shuffle  false: always 0, 1, 2, …
  SampleOrder(std::size_t size, std::uint64_t seed, bool shuffle) : size_(size), seed_(seed), shuffle_(shuffle) {}

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }
  /// Whether the order may differ between epochs.
  [[nodiscard]] bool shuffles() const noexcept { return shuffle_; }
  /// Writes the permutation of `epoch` (from 1) to `order`, which has size() elements: a Fisher-Yates shuffle with
  /// random numbers by Philox.
  void write(std::uint64_t epoch, std::span<std::uint64_t> order) const;
  /// The same permutation in half the memory, for at most most_short samples.
  void write(std::uint64_t epoch, std::span<std::uint32_t> order) const;
  /// The same permutation piece by piece: draws at least `count` more elements of `order`, or all remaining ones.
  /// @param left  number of elements not drawn yet: size() for the first piece, before which the contents of `order` do
  ///              not matter; then the previous call's result
  /// @return number of elements not drawn yet; 0: the permutation is complete
  std::size_t write_more(std::uint64_t epoch, std::span<std::uint32_t> order, std::size_t left,
                         std::size_t count) const;
  static constexpr std::uint64_t most_short = std::uint64_t{1} << 32;

 private:
  std::size_t size_;
  std::uint64_t seed_;
  bool shuffle_;
};

}  // namespace ronda
