#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ronda/data/dataset.hpp>

namespace ronda {

/// Mixup (Zhang et al., "mixup: beyond empirical risk minimization", ICLR 2018): in training each sample is mixed with
/// another one, both inputs and targets,
///
///     input = λ · input_a + (1 − λ) · input_b,   target = λ · onehot(label_a) + (1 − λ) · onehot(label_b)
///
/// with λ drawn from Beta(α, α). Partner and λ are functions of seed, epoch and sample, so they are the same on any
/// number of ranks, in any batch, and after a restart. The partner may be any training sample (SampleRequest::pool),
/// not only one of the batch, so two samples are read per row. In an evaluation samples are not mixed; wrap test data
/// too, so that its targets have the same type.
///
/// `input` is float32; `target` becomes float32 (classes), probabilities for SoftmaxCrossEntropy. If samples have
/// weights, each of the two counts with its own weight; a sample of weight 0 adds nothing. A row whose weight would be
/// below smallest_weight gets weight 0.
class MixupDataset final : public Dataset {
 public:
  /// @param data     outlives this object; its targets are labels, int32 scalars. Its random changes, as of a
  ///                 TransformedDataset, are applied to each of the two samples, as in this epoch without mixup
  /// @param alpha    parameter of the Beta distribution, above 0; usually 0.2 to 1; larger values mix more
  /// @param classes  number of classes: labels are below it
  /// Throws InputError for invalid arguments.
  MixupDataset(const Dataset& data, double alpha, std::int64_t classes);
  ~MixupDataset() override;

  [[nodiscard]] std::size_t size() const override { return data_.size(); }
  [[nodiscard]] std::span<const Field> fields() const override { return fields_; }
  /// Throws InputError that names the sample if its label is not below `classes`. The first batches of each size
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
