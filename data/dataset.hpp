#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/core/random.hpp>
#include <ronda/data/batch.hpp>
#include <ronda/data/byte_values.hpp>

namespace ronda {

/// A field of all samples as stored in memory, sample by sample.
struct StoredField {
  std::span<const std::byte> bytes;  ///< size() × elements per sample × bytes of a stored element
  Decode decode = Decode::none;
};

/// The part of a dataset's samples that a training may read.
class SamplePool {
 public:
  virtual ~SamplePool() = default;
  [[nodiscard]] virtual std::size_t size() const = 0;
  /// The dataset's number of the pool's sample i < size().
  [[nodiscard]] virtual std::uint64_t number(std::size_t i) const = 0;
  [[nodiscard]] virtual bool contains(std::uint64_t sample) const = 0;
};

/// The samples to read into a batch.
struct SampleRequest {
  std::span<const std::uint64_t> samples;  ///< sample numbers of rows 0, 1, …
  std::uint64_t epoch = 0;                 ///< epoch of the training, from 1; 0: without variation, as in evaluation
  std::uint64_t seed = 1;                  ///< seed of the training
  /// A dataset that combines several samples into one may use only samples of the pool, for example none of the
  /// validation samples; null: any.
  const SamplePool* pool = nullptr;

  /// The key of the random numbers for the sample of a row. It depends only on seed, epoch, sample and stream, so it is
  /// the same on any number of ranks, in any batch, and after a restart.
  /// @param stream  identifies one use of random numbers
  [[nodiscard]] RngKey key(std::size_t row, std::string_view stream) const;
};

/// Index i of `count` evenly spread indices in [0, size), including the first and the last; i < count <= size.
[[nodiscard]] constexpr std::uint64_t spread(std::size_t i, std::size_t count, std::size_t size) noexcept {
  return count < 2 ? 0 : i * std::uint64_t{size - 1} / (count - 1);
}

/// Samples that can be read in any order. Thread-safe for reading: a separate thread may assemble batches.
class Dataset {
 public:
  virtual ~Dataset() = default;
  [[nodiscard]] virtual std::size_t size() const = 0;
  /// The fields of a sample; at least `input` and `target`.
  [[nodiscard]] virtual std::span<const Field> fields() const = 0;
  /// Writes sample request.samples[i] to row i of `batch`. Allocates nothing. There are at most batch.capacity()
  /// samples; each is less than size(). A dataset that varies its samples uses the request's epoch and keys. The weight
  /// of a sample in losses, gradients and results is in `batch.weights()`: 1, unless `read` writes another number: 0,
  /// or from smallest_weight to largest_weight. For other weights the loader throws an error with the sample's number.
  virtual void read(const SampleRequest& request, Batch& batch) const = 0;
  /// The file of a sample, for messages: `pictures/cat/3.png`; empty: none or unknown.
  [[nodiscard]] virtual std::string origin(std::uint64_t /*sample*/) const { return {}; }
  /// Gradients down to 1e-20 times this are not denormal in float32; training treats denormal numbers as 0.
  static constexpr float smallest_weight = 1e-18F;
  static constexpr float largest_weight = 1e9F;  ///< gradients times this, squared, are within float32
  /// The fields, in the order of fields(), for a device that stores them and assembles batches with the same bits as
  /// `read`. Valid as long as the dataset. Empty if samples are computed, varied or weighted by `read`.
  [[nodiscard]] virtual std::vector<StoredField> stored() const { return {}; }
  /// A hash by which ranks, and a resumed training, check that they have the same data. It covers the size, the fields,
  /// and the values and weights of at most fingerprint_samples samples: the first, the last and others evenly spread
  /// between them, fewer if these exceed fingerprint_bytes. In datasets of at most that many samples it detects any
  /// different byte; in larger ones not those in other samples. Calls `read`, and throws its errors. A dataset whose
  /// `read` is slow or rounds overrides this, with a hash of bounded cost.
  [[nodiscard]] virtual std::uint64_t fingerprint() const;
  static constexpr std::size_t fingerprint_samples = 2048, fingerprint_bytes = std::size_t{64} << 20;

 protected:
  /// The same for at most `samples` samples.
  [[nodiscard]] std::uint64_t fingerprint_of(std::size_t samples) const;
};

}  // namespace ronda
