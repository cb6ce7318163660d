#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <ronda/data/batch.hpp>

namespace ronda {

/// Samples that can be read in any order. Thread-safe for reading: a batch may be assembled on a thread of its own.
class Dataset {
 public:
  virtual ~Dataset() = default;
  [[nodiscard]] virtual std::size_t size() const = 0;
  /// What a sample consists of; at least `input` and `target`.
  [[nodiscard]] virtual std::span<const Field> fields() const = 0;
  /// Writes sample samples[i] to row i of `batch`. Allocates nothing. samples.size() ≤ batch.capacity(); each < size().
  virtual void read(std::span<const std::uint64_t> samples, Batch& batch) const = 0;
  /// A hash of the contents, so that ranks can see whether they have the same data.
  [[nodiscard]] virtual std::uint64_t fingerprint() const = 0;
};

}  // namespace ronda
