#pragma once
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ronda/data/dataset.hpp>

namespace ronda {

/// Some samples of a dataset, in any order. They keep their random keys of the whole dataset, so transforms change them
/// in the same way.
class DatasetPart final : public Dataset {
 public:
  /// @param data     outlives this object
  /// @param samples  sample i is samples[i] of `data`
  /// Throws LogicError for a sample that does not exist.
  DatasetPart(const Dataset& data, std::vector<std::uint64_t> samples);
  /// The samples [begin, end), without a list in memory.
  DatasetPart(const Dataset& data, std::uint64_t begin, std::uint64_t end);

  [[nodiscard]] std::size_t size() const override { return size_; }
  [[nodiscard]] std::span<const Field> fields() const override { return data_.fields(); }
  void read(const SampleRequest& request, Batch& batch) const override;
  [[nodiscard]] std::string origin(std::uint64_t sample) const override { return data_.origin(number(sample)); }
  /// A hash of the whole's fingerprint, of size(), and of at most fingerprint_samples of the sample numbers, evenly
  /// spread.
  [[nodiscard]] std::uint64_t fingerprint() const override;

  /// The dataset that this is a part of.
  [[nodiscard]] const Dataset& whole() const noexcept { return data_; }
  /// The number in `whole()` of sample `sample` < size().
  [[nodiscard]] std::uint64_t number(std::size_t sample) const noexcept {
    return samples_.empty() ? begin_ + sample : samples_[sample];
  }
  /// The inverse: the first sample of this part with that number in the whole; `nullopt` if there is none. Linear
  /// search if the list is not sorted.
  [[nodiscard]] std::optional<std::uint64_t> place(std::uint64_t sample) const;

 private:
  const Dataset& data_;
  std::size_t size_;
  std::uint64_t begin_ = 0;             ///< first sample, if there is no list
  std::vector<std::uint64_t> samples_;  ///< the list
  bool sorted_ = true;                  ///< the list is ascending
  mutable std::mutex reading_;
  mutable std::vector<std::uint64_t> request_;  ///< sample numbers in `data_` of the current read
};

/// A random part of the samples for validation, and the rest for training; both in ascending order. The same for the
/// same size, share and seed.
struct ValidationSplit {
  std::vector<std::uint64_t> training, validation;
};
/// @param share  above 0 and below 1; each part gets at least one sample
/// Throws InputError for an invalid share, and for fewer than two samples.
[[nodiscard]] ValidationSplit split_for_validation(std::size_t samples, double share, std::uint64_t seed);

}  // namespace ronda
