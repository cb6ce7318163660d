#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/core/random.hpp>
#include <ronda/data/batch.hpp>
#include <ronda/data/dataset.hpp>

namespace ronda {

/// One sample in a batch.
class SampleRow {
 public:
  SampleRow(const Batch& batch, std::size_t row) : batch_(batch), row_(row) {}
  /// The sample's own part of a field, without the batch axis. Throws InputError, listing the names there are.
  [[nodiscard]] Tensor field(std::string_view name) const;

 private:
  const Batch& batch_;
  std::size_t row_;
};

/// Changes one sample in place, as the key has it: a pure function of (sample, key).
struct Transform {
  std::string name;  ///< with its parameters, for messages: `random_flip(0.5)`; equal names change samples alike
  std::function<void(const SampleRow& sample, const RngKey& key)> apply;
};

/// A mirror image, left to right, of the field `input`, float32 (height, width, channels), with this probability.
[[nodiscard]] Transform random_flip(double probability = 0.5);
/// The field `input`, float32 (height, width, channels), shifted by up to `pixels` in both directions, each as likely
/// as the other; what comes in is zero. The usual crop of a padded image.
[[nodiscard]] Transform random_shift(std::int64_t pixels);

/// A dataset whose samples are changed, one transform after the other, each time they are read for a training: the same
/// on any number of ranks, and after any restart. Read for an evaluation they are as they were.
class TransformedDataset final : public Dataset {
 public:
  /// @param data  outlives this object
  /// Throws InputError for a transform without a function.
  TransformedDataset(const Dataset& data, std::vector<Transform> transforms);

  [[nodiscard]] std::size_t size() const override { return data_.size(); }
  [[nodiscard]] std::span<const Field> fields() const override { return data_.fields(); }
  /// What a transform throws comes with its name, the sample and the epoch, as an InputError.
  void read(const SampleRequest& request, Batch& batch) const override;
  [[nodiscard]] std::uint64_t fingerprint() const override;

 private:
  struct Step {
    Transform transform;
    std::string stream;  ///< of random numbers; another one where a name comes again
  };

  const Dataset& data_;
  std::vector<Step> steps_;
};

}  // namespace ronda
