#pragma once
#include <functional>
#include <mutex>
#include <span>
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
  SampleRow(const Batch& batch, std::size_t row, std::span<float> scratch = {})
      : batch_(batch), row_(row), scratch_(scratch) {}
  /// The sample's own part of a field, without the batch axis. Throws InputError, listing the names there are.
  [[nodiscard]] Tensor field(std::string_view name) const;
  /// Memory for a transform that cannot work in place: as many floats as the largest field has elements. It holds
  /// anything.
  [[nodiscard]] std::span<float> scratch() const noexcept { return scratch_; }

 private:
  const Batch& batch_;
  std::size_t row_;
  std::span<float> scratch_;
};

/// Changes one sample in place, as the key has it: a pure function of (sample, key).
struct Transform {
  std::string name;  ///< with its parameters, for messages: `random_flip(0.5)`; equal names change samples alike
  std::function<void(const SampleRow& sample, const RngKey& key)> apply;
  bool in_evaluation = false;  ///< it is applied there too; one that is does not use its key
};

/// A dataset whose samples are changed, one transform after the other, each time they are read for a training: the same
/// on any number of ranks, and after any restart. Read for an evaluation they are as they were, but for transforms that
/// are applied there too (Transform::in_evaluation).
class TransformedDataset final : public Dataset {
 public:
  /// @param data  outlives this object
  /// Throws InputError for a transform without a function.
  TransformedDataset(const Dataset& data, std::vector<Transform> transforms);

  [[nodiscard]] std::size_t size() const override { return data_.size(); }
  [[nodiscard]] std::span<const Field> fields() const override { return data_.fields(); }
  /// What a transform throws comes with its name, the sample and the epoch, as an InputError.
  void read(const SampleRequest& request, Batch& batch) const override;
  [[nodiscard]] std::string origin(std::uint64_t sample) const override { return data_.origin(sample); }
  [[nodiscard]] std::uint64_t fingerprint() const override;

 private:
  struct Step {
    Transform transform;
    std::string stream;  ///< of random numbers; another one where a name comes again
  };

  const Dataset& data_;
  std::vector<Step> steps_;
  mutable std::mutex reading_;
  mutable std::vector<float> scratch_;  ///< of the read under way
};

}  // namespace ronda
