#pragma once
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ronda/data/dataset.hpp>

namespace ronda {

/// Some samples of a dataset, in an order of their own. They keep the keys that they have in the whole, so a transform
/// changes them as it would there.
class DatasetPart final : public Dataset {
 public:
  /// @param data     outlives this object
  /// @param samples  of `data`: sample i is samples[i]
  /// Throws LogicError for one that there is not.
  DatasetPart(const Dataset& data, std::vector<std::uint64_t> samples);
  /// The samples from `begin` up to but without `end`, which are no list in memory.
  DatasetPart(const Dataset& data, std::uint64_t begin, std::uint64_t end);

  [[nodiscard]] std::size_t size() const override { return size_; }
  [[nodiscard]] std::span<const Field> fields() const override { return data_.fields(); }
  void read(const SampleRequest& request, Batch& batch) const override;
  [[nodiscard]] std::string origin(std::uint64_t sample) const override { return data_.origin(number(sample)); }
  /// Of the whole's, of size(), and of at most fingerprint_samples of its numbers, evenly spread.
  [[nodiscard]] std::uint64_t fingerprint() const override;

  /// The data that this is a part of.
  [[nodiscard]] const Dataset& whole() const noexcept { return data_; }
  /// The number in `whole()` of sample `sample` < size().
  [[nodiscard]] std::uint64_t number(std::size_t sample) const noexcept {
    return samples_.empty() ? begin_ + sample : samples_[sample];
  }
  /// The inverse: the first of this part with that number in the whole; `nullopt` if the part does not have it. A list
  /// that does not go up is searched from its beginning.
  [[nodiscard]] std::optional<std::uint64_t> place(std::uint64_t sample) const;

 private:
  const Dataset& data_;
  std::size_t size_;
  std::uint64_t begin_ = 0;             ///< of what is no list
  std::vector<std::uint64_t> samples_;  ///< the list
  bool sorted_ = true;                  ///< the list goes up
  mutable std::mutex reading_;
  mutable std::vector<std::uint64_t> request_;  ///< of the read under way, by `data_`'s numbers
};

/// A random part of the samples for validation, and the rest for training; both in ascending order. The same for the
/// same size, share and seed.
struct ValidationSplit {
  std::vector<std::uint64_t> training, validation;
};
/// @param share  above 0 and below 1; of few samples each part gets at least one
/// Throws InputError for another share, and for fewer than two samples.
[[nodiscard]] ValidationSplit split_for_validation(std::size_t samples, double share, std::uint64_t seed);

}  // namespace ronda
