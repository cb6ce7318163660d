#include <ronda/core/error.hpp>
#include <ronda/core/hash.hpp>
#include <ronda/data/transform.hpp>

#include <algorithm>
#include <utility>

namespace ronda {

Tensor SampleRow::field(std::string_view name) const {
  const Tensor& all = batch_.field(name);
  const TensorDesc desc{all.shape().without_batch(), all.dtype(), {}};
  return {desc, all.data() + row_ * desc.bytes(), all.device()};
}

TransformedDataset::TransformedDataset(const Dataset& data, std::vector<Transform> transforms) : data_(data) {
  for (Transform& transform : transforms) {
    if (!transform.apply) throw InputError("the transform '" + transform.name + "' has no function");
    const auto earlier =
        std::ranges::count(steps_, transform.name, [](const Step& step) { return step.transform.name; });
    std::string stream = transform.name + " " + std::to_string(earlier);
    steps_.push_back({std::move(transform), std::move(stream)});
  }
  std::int64_t most = 0;
  for (const Field& field : data.fields()) most = std::max(most, field.shape.count());
  scratch_.resize(static_cast<std::size_t>(most));
}

void TransformedDataset::read(const SampleRequest& request, Batch& batch) const {
  data_.read(request, batch);
  const bool evaluation = request.epoch == 0;
  const std::lock_guard lock(reading_);
  for (std::size_t row = 0; row < request.samples.size(); ++row)
    for (const Step& step : steps_) try {
        if (evaluation && !step.transform.in_evaluation) continue;
        step.transform.apply(SampleRow(batch, row, scratch_), request.key(row, step.stream));
      } catch (const std::exception& error) {
        throw InputError("the transform " + step.transform.name + ", sample " + std::to_string(request.samples[row]) +
                         " in epoch " + std::to_string(request.epoch) + ": " + error.what());
      }
}

std::uint64_t TransformedDataset::fingerprint() const {
  Hash hash;
  hash.add(data_.fingerprint());
  for (const Step& step : steps_) hash.add(step.stream);
  return hash.value();
}

}  // namespace ronda
