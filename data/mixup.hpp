#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ronda/data/dataset.hpp>

namespace ronda {

/// Mixup (Zhang et al., "mixup: beyond empirical risk minimization", ICLR 2018): each sample of a training is mixed
/// with another one, inputs and targets alike,
///
///     input = λ · input_a + (1 − λ) · input_b,   target = λ · onehot(label_a) + (1 − λ) · onehot(label_b)
///
/// with λ drawn from Beta(α, α). Partner and λ are functions of seed, epoch and sample, so the same on any number of
/// ranks, in any batch, and after any restart; the partner is any sample of the training (SampleRequest::pool), not of
/// the batch, so every sample is read with another one. Read for an evaluation samples are not mixed: test data is
/// wrapped as well, so that its targets are of the same kind.
///
/// `input` is float32; `target` becomes float32 (classes), probabilities as SoftmaxCrossEntropy takes them. Where
/// samples have weights, each half counts with its own; a sample of weight 0 adds
/// nothing. A row that would count less than smallest_weight does not count.
class MixupDataset final : public Dataset {
 public:
  /// @param data     outlives this object; its targets are labels, int32 scalars. Its own random changes, as those of a
  ///                 TransformedDataset, are those that each of the two samples has in this epoch
  /// @param alpha    of the Beta distribution, above 0; 0.2 to 1 are usual, and more mixes more
  /// @param classes  labels are below it
  /// Throws InputError for what does not fit.
  MixupDataset(const Dataset& data, double alpha, std::int64_t classes);
  ~MixupDataset() override;

  [[nodiscard]] std::size_t size() const override { return data_.size(); }
  [[nodiscard]] std::span<const Field> fields() const override { return fields_; }
  /// Throws InputError that names the sample where its label is not below `classes`. The first batches of a size
  /// allocate.
  void read(const SampleRequest& request, Batch& batch) const override;
  [[nodiscard]] std::string origin(std::uint64_t sample) const override { return data_.origin(sample); }
  [[nodiscard]] std::uint64_t fingerprint() const override;

 private:
  struct Scratch;

  const Dataset& data_;
  double alpha_;
  std::size_t classes_;
  std::vector<Field> fields_;
  std::unique_ptr<Scratch> scratch_;
};

}  // namespace ronda
