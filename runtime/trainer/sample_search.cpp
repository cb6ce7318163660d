#include <ronda/data/dataset_part.hpp>
#include <ronda/data/loader.hpp>
#include <ronda/runtime/trainer/sample_search.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

namespace ronda {
namespace {

template <class T>
std::span<const T> row_of(const Tensor& field, std::size_t row) {
  const std::span<const T> values = field.as<const T>();
  const std::size_t elements = values.size() / static_cast<std::size_t>(field.shape()[0]);
  return values.subspan(row * elements, elements);
}

/// The sample's number in the whole data that `data` is a part of.
std::uint64_t number_in_whole(const Dataset* data, std::uint64_t sample) {
  while (const auto* part = dynamic_cast<const DatasetPart*>(data)) {
    sample = part->number(sample);
    data = &part->whole();
  }
  return sample;
}

}  // namespace

std::string find_sample(const Dataset& data, const SampleOrder& order, const BatchPlan& plan, const StepPlace& place,
                        const RowFault& fault) {
  const std::uint64_t epoch = std::max<std::uint64_t>(place.epoch, 1);
  BatchLoader loader(data, order, plan, {.varies = place.epoch > 0});
  loader.seek(epoch, place.step);
  std::vector<std::uint64_t> samples(order.size());
  order.write(epoch, samples);
  for (std::size_t i = 0; i < place.steps * plan.micro_batches(); ++i) {
    const Batch& batch = loader.next();
    const Range part = plan.part(place.step + i / plan.micro_batches(), i % plan.micro_batches());
    for (std::size_t row = 0; row < part.size(); ++row)
      if (batch.weights().as<const float>()[row] != 0)
        if (const std::string text = fault(batch, row); !text.empty()) {
          const std::uint64_t sample = samples[part.begin + row];
          const std::string origin = data.origin(sample);
          return "sample " + std::to_string(number_in_whole(&data, sample)) + " (" + text +
                 (origin.empty() ? "" : ", from " + origin) + ")";
        }
  }
  return {};
}

RowFault nonfinite_field(std::span<const Field> fields) {
  return [fields](const Batch& batch, std::size_t row) -> std::string {
    for (const Field& field : fields) {
      if (field.dtype != DType::float32) continue;
      const auto values = row_of<float>(batch.field(field.name), row);
      const auto bad = std::ranges::find_if_not(values, [](float value) { return std::isfinite(value); });
      if (bad != values.end()) return "its field '" + field.name + "' has " + (std::isnan(*bad) ? "nan" : "inf");
    }
    return {};
  };
}

RowFault has_label(std::int32_t label) {
  return [label](const Batch& batch, std::size_t row) -> std::string {
    if (batch.target().dtype() != DType::int32) return {};
    return std::ranges::count(row_of<std::int32_t>(batch.target(), row), label) > 0
               ? "its target is " + std::to_string(label)
               : "";
  };
}

}  // namespace ronda
