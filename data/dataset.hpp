#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <ronda/data/batch.hpp>
#include <ronda/data/gather.hpp>

namespace ronda {

/// A field of all samples as it lies in memory, sample after sample.
struct StoredField {
  std::span<const std::byte> bytes;  ///< size() × the elements of a sample × an element as it is stored
  Decode decode = Decode::none;
};

/// Samples that can be read in any order. Thread-safe for reading: a batch may be assembled on a thread of its own.
class Dataset {
 public:
  virtual ~Dataset() = default;
  [[nodiscard]] virtual std::size_t size() const = 0;
  /// What a sample consists of; at least `input` and `target`.
  [[nodiscard]] virtual std::span<const Field> fields() const = 0;
  /// Writes sample samples[i] to row i of `batch`. Allocates nothing. samples.size() ≤ batch.capacity(); each < size().
  /// A sample counts as much as its place in `batch.weights()` says, in losses, gradients and results: 1, unless `read`
  /// writes another number there, finite and not negative.
  virtual void read(std::span<const std::uint64_t> samples, Batch& batch) const = 0;
  /// The same fields, in their order, for a device that keeps them and makes its batches itself, to the bits of `read`;
  /// valid as long as the dataset. Empty where `read` alone knows how a sample comes about, or weighs samples.
  [[nodiscard]] virtual std::vector<StoredField> stored() const { return {}; }
  /// A hash of the contents, so that ranks can see whether they have the same data.
  [[nodiscard]] virtual std::uint64_t fingerprint() const = 0;
};

}  // namespace ronda
