#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace ronda {

/// In which order an epoch takes the samples. A function of (seed, epoch) alone, so every rank knows it without a word,
/// whatever the number of ranks, and a resumed run finds its place again.
class SampleOrder {
 public:
  /// @param shuffle  false: always 0, 1, 2, …
  SampleOrder(std::size_t size, std::uint64_t seed, bool shuffle) : size_(size), seed_(seed), shuffle_(shuffle) {}

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }
  /// Whether two epochs may differ.
  [[nodiscard]] bool shuffles() const noexcept { return shuffle_; }
  /// Writes the permutation of `epoch` (from 1) to `order`, which has size() places: the shuffle of Fisher and Yates,
  /// with numbers by Philox.
  void write(std::uint64_t epoch, std::span<std::uint64_t> order) const;
  /// The same permutation in half the memory, of at most most_short samples.
  void write(std::uint64_t epoch, std::span<std::uint32_t> order) const;
  /// The same permutation piece by piece: draws at least `count` more places of `order`, or all there are.
  /// @param left  how many places are not drawn yet: size() for the first piece, before which `order` may hold
  ///              anything; then what the call before returned
  /// @return how many are not drawn yet now; 0: the permutation is complete
  std::size_t write_more(std::uint64_t epoch, std::span<std::uint32_t> order, std::size_t left,
                         std::size_t count) const;
  static constexpr std::uint64_t most_short = std::uint64_t{1} << 32;

 private:
  std::size_t size_;
  std::uint64_t seed_;
  bool shuffle_;
};

}  // namespace ronda
