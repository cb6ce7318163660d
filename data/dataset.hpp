#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
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

/// The part of a dataset's samples that a training may read.
class SamplePool {
 public:
  virtual ~SamplePool() = default;
  [[nodiscard]] virtual std::size_t size() const = 0;
  /// The number in the dataset of the pool's sample i < size().
  [[nodiscard]] virtual std::uint64_t number(std::size_t i) const = 0;
  [[nodiscard]] virtual bool contains(std::uint64_t sample) const = 0;
};

/// The samples that a batch is to hold.
struct SampleRequest {
  std::span<const std::uint64_t> samples;  ///< of row 0, 1, …
  std::uint64_t epoch = 0;                 ///< of a training, from 1; 0: nothing is to be varied, as in evaluation
  std::uint64_t seed = 1;                  ///< of the training
  /// A dataset that puts several of its samples into one takes only samples of the pool; null: any. Other samples are
  /// those of the validation, for example.
  const SamplePool* pool = nullptr;

  /// For what is drawn at random for the sample of a row: a function of seed, epoch, sample and stream alone, so the
  /// same on any number of ranks, in any batch, and after any restart.
  /// @param stream  tells one use of random numbers from another
  [[nodiscard]] RngKey key(std::size_t row, std::string_view stream) const;
};

/// Place i of `count` places in [0, size), evenly spread, the first and the last among them; i < count <= size.
[[nodiscard]] constexpr std::uint64_t spread(std::size_t i, std::size_t count, std::size_t size) noexcept {
  return count < 2 ? 0 : i * std::uint64_t{size - 1} / (count - 1);
}

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
  /// number there: 0, or from smallest_weight to largest_weight. The loader refuses others by the sample's number.
  virtual void read(const SampleRequest& request, Batch& batch) const = 0;
  /// The files of a sample, for messages: `pictures/cat/3.png`; empty: none, or unknown.
  [[nodiscard]] virtual std::string origin(std::uint64_t /*sample*/) const { return {}; }
  /// Gradients times this, down to 1e-20, are no denormals of float32, which training takes for 0.
  static constexpr float smallest_weight = 1e-18F;
  static constexpr float largest_weight = 1e9F;  ///< gradients times this, squared, are within float32
  /// The same fields, in their order, for a device that keeps them and makes its batches itself, to the bits of `read`;
  /// valid as long as the dataset. Empty where `read` alone knows how a sample comes about, varies or weighs samples.
  [[nodiscard]] virtual std::vector<StoredField> stored() const { return {}; }
  /// A hash by which ranks, and a training that resumes, see whether they have the same data. It never reads
  /// everything: it is of the size, the fields, and the values and weights of at most fingerprint_samples samples, the
  /// first, the last and others spread evenly between them, fewer where these have more than fingerprint_bytes. Data of
  /// at most so many samples differs wherever a byte does; of more samples a difference elsewhere is not seen. Calls
  /// `read`, and throws what that throws. A dataset whose reading is slow, or rounds, has another hash, as bounded.
  [[nodiscard]] virtual std::uint64_t fingerprint() const;
  static constexpr std::size_t fingerprint_samples = 2048, fingerprint_bytes = std::size_t{64} << 20;

 protected:
  /// The same of at most `samples` samples.
  [[nodiscard]] std::uint64_t fingerprint_of(std::size_t samples) const;
};

}  // namespace ronda
