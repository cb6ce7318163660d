#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <ronda/core/random.hpp>
#include <ronda/data/batch.hpp>
#include <ronda/data/gather.hpp>

namespace ronda {

/// A field of all samples as it lies in memory, sample after sample.
struct StoredField {
  std::span<const std::byte> bytes;  ///< size() × the elements of a sample × an element as it is stored
  Decode decode = Decode::none;
};

/// The samples that a batch is to hold.
struct SampleRequest {
  std::span<const std::uint64_t> samples;  ///< of row 0, 1, …
  std::uint64_t epoch = 0;                 ///< of a training, from 1; 0: nothing is to be varied, as in evaluation
  std::uint64_t seed = 1;                  ///< of the training

  /// For what is drawn at random for the sample of a row: a function of seed, epoch, sample and stream alone, so the
  /// same on any number of ranks, in any batch, and after any restart.
  /// @param stream  tells one use of random numbers from another
  [[nodiscard]] RngKey key(std::size_t row, std::string_view stream) const;
};

/// Samples that can be read in any order. Thread-safe for reading: a batch may be assembled on a thread of its own.
class Dataset {
 public:
  virtual ~Dataset() = default;
  [[nodiscard]] virtual std::size_t size() const = 0;
  /// What a sample consists of; at least `input` and `target`.
  [[nodiscard]] virtual std::span<const Field> fields() const = 0;
  /// Writes sample request.samples[i] to row i of `batch`. Allocates nothing. There are at most batch.capacity(); each
  /// is less than size(). A dataset that varies its samples does so by the request's epoch and keys. A sample counts as
  /// much as its place in `batch.weights()` says, in losses, gradients and results: 1, unless `read` writes another
  /// number there, finite and not negative.
  virtual void read(const SampleRequest& request, Batch& batch) const = 0;
  /// The same fields, in their order, for a device that keeps them and makes its batches itself, to the bits of `read`;
  /// valid as long as the dataset. Empty where `read` alone knows how a sample comes about, varies or weighs samples.
  [[nodiscard]] virtual std::vector<StoredField> stored() const { return {}; }
  /// A hash of the contents, so that ranks can see whether they have the same data.
  [[nodiscard]] virtual std::uint64_t fingerprint() const = 0;
};

}  // namespace ronda
