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
  /// The sample's part of a field, without the batch axis. Throws InputError that lists the names if there is no such
  /// field.
  [[nodiscard]] Tensor field(std::string_view name) const;
  /// Memory for a transform that cannot work in place: as many floats as the largest field has elements, not
  /// initialised.
  [[nodiscard]] std::span<float> scratch() const noexcept { return scratch_; }

 private:
  const Batch& batch_;
  std::size_t row_;
  std::span<float> scratch_;
};

/// Changes one sample in place: a pure function of (sample, key).
struct Transform {
  std::string name;  ///< with parameters, for messages: `random_flip(0.5)`; transforms with equal names must be equal
  std::function<void(const SampleRow& sample, const RngKey& key)> apply;
  bool in_evaluation = false;  ///< also applied in evaluations; must not use its key then
};

/// A dataset that applies transforms, in order, to each sample read in training. The results are the same on any number
/// of ranks, and after a restart. In an evaluation only transforms with Transform::in_evaluation are applied.
class TransformedDataset final : public Dataset {
 public:
  /// @param data  outlives this object
  /// Throws InputError for a transform without a function.
  TransformedDataset(const Dataset& data, std::vector<Transform> transforms);

  [[nodiscard]] std::size_t size() const override { return data_.size(); }
  [[nodiscard]] std::span<const Field> fields() const override { return data_.fields(); }
  /// An exception of a transform becomes an InputError with its name, the sample and the epoch.
  void read(const SampleRequest& request, Batch& batch) const override;
  [[nodiscard]] std::string origin(std::uint64_t sample) const override { return data_.origin(sample); }
  [[nodiscard]] std::uint64_t fingerprint() const override;

 private:
  struct Step {
    Transform transform;
    std::string stream;  ///< stream of random numbers; different for repeated names
  };

  const Dataset& data_;
  std::vector<Step> steps_;
  mutable std::mutex reading_;
  mutable std::vector<float> scratch_;  ///< scratch memory of the current read
};

}  // namespace ronda
