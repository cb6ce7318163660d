#include <ronda/core/error.hpp>
#include <ronda/core/hash.hpp>
#include <ronda/core/text.hpp>
#include <ronda/data/batch_plan.hpp>
#include <ronda/data/dataset_part.hpp>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>

namespace ronda {

namespace {

/// The samples of a part, or of a part of that part, by their numbers in the whole.
class PartPool final : public SamplePool {
 public:
  PartPool(const DatasetPart& part, const SamplePool* inner) : part_(part), inner_(inner) {}
  [[nodiscard]] std::size_t size() const override { return inner_ == nullptr ? part_.size() : inner_->size(); }
  [[nodiscard]] std::uint64_t number(std::size_t i) const override {
    return part_.number(inner_ == nullptr ? i : inner_->number(i));
  }
  [[nodiscard]] bool contains(std::uint64_t sample) const override {
    const std::optional<std::uint64_t> place = part_.place(sample);
    return place && (inner_ == nullptr || inner_->contains(*place));
  }

 private:
  const DatasetPart& part_;
  const SamplePool* inner_;
};

}  // namespace

DatasetPart::DatasetPart(const Dataset& data, std::vector<std::uint64_t> samples)
    : data_(data), size_(samples.size()), samples_(std::move(samples)), sorted_(std::ranges::is_sorted(samples_)) {
  const auto bad = std::ranges::find_if(samples_, [&](std::uint64_t sample) { return sample >= data.size(); });
  if (bad != samples_.end())
    throw LogicError("a part of a dataset of " + std::to_string(data.size()) + " samples was to have sample " +
                     std::to_string(*bad));
}

DatasetPart::DatasetPart(const Dataset& data, std::uint64_t begin, std::uint64_t end)
    : data_(data), size_(end - begin), begin_(begin) {
  if (begin > end || end > data.size())
    throw LogicError("a part of a dataset of " + std::to_string(data.size()) + " samples was to have those from " +
                     std::to_string(begin) + " up to " + std::to_string(end));
}

void DatasetPart::read(const SampleRequest& request, Batch& batch) const {
  const std::lock_guard lock(reading_);
  if (request_.size() < request.samples.size()) request_.resize(request.samples.size());  // rows that fill up a batch
  std::ranges::transform(request.samples, request_.begin(), [&](std::uint64_t sample) { return number(sample); });
  const PartPool pool(*this, request.pool);
  data_.read({.samples = std::span(request_).first(request.samples.size()),
              .epoch = request.epoch,
              .seed = request.seed,
              .pool = &pool},
             batch);
}

std::optional<std::uint64_t> DatasetPart::place(std::uint64_t sample) const {
  if (samples_.empty())
    return sample >= begin_ && sample - begin_ < size_ ? std::optional(sample - begin_) : std::nullopt;
  const auto found = sorted_ ? std::ranges::lower_bound(samples_, sample) : std::ranges::find(samples_, sample);
  if (found == samples_.end() || *found != sample) return std::nullopt;
  return static_cast<std::uint64_t>(found - samples_.begin());
}

std::uint64_t DatasetPart::fingerprint() const {
  Hash hash;
  hash.add(data_.fingerprint()).add(size_);
  const std::size_t count = std::min(size_, fingerprint_samples);
  for (std::size_t i = 0; i < count; ++i) hash.add(number(spread(i, count, size_)));
  return hash.value();
}

ValidationSplit split_for_validation(std::size_t samples, double share, std::uint64_t seed) {
  if (!(share > 0 && share < 1))
    throw InputError("validation_split: a share above 0 and below 1 is kept for validation, not " + shortest(share));
  if (samples < 2) throw InputError("validation_split: of fewer than two samples none can be kept for validation");
  const auto wanted = static_cast<std::size_t>(std::llround(share * static_cast<double>(samples)));
  const std::size_t kept = std::clamp<std::size_t>(wanted, 1, samples - 1);
  std::vector<std::uint64_t> order(samples);
  SampleOrder(samples, seed, true).write(0, order);  // no epoch of a training has this number
  ValidationSplit split;
  split.validation.assign(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept));
  split.training.assign(order.begin() + static_cast<std::ptrdiff_t>(kept), order.end());
  std::ranges::sort(split.validation);
  std::ranges::sort(split.training);
  return split;
}

}  // namespace ronda
