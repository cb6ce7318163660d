#include <ronda/core/error.hpp>
#include <ronda/data/device_dataset.hpp>

#include <utility>

namespace ronda {
namespace {

/// Where each field lies, one after the other.
std::vector<std::size_t> places_of(std::span<const StoredField> fields, ArenaPlan& arena) {
  std::vector<std::size_t> offsets;
  for (const auto& field : fields) offsets.push_back(arena.reserve(field.bytes.size()));
  return offsets;
}

/// @param samples  of the whole dataset
gather::KeptField kept_field(const StoredField& field, std::size_t samples, const std::byte* from) {
  const std::size_t bytes = field.bytes.size() / samples;
  constexpr std::size_t word = 4;
  const bool words = field.decode == Decode::none && bytes % word == 0;
  const auto kind = field.decode == Decode::unit    ? gather::KeptField::Kind::units
                    : field.decode == Decode::label ? gather::KeptField::Kind::labels
                    : words                         ? gather::KeptField::Kind::words
                                                    : gather::KeptField::Kind::bytes;
  return {from, nullptr, static_cast<std::int64_t>(words ? bytes / word : bytes), kind};
}

}  // namespace

std::size_t DeviceDataset::bytes_of(const Dataset& data) {
  const auto fields = data.stored();
  if (fields.size() > gather::Rows::most_fields) return 0;
  ArenaPlan arena;
  places_of(fields, arena);
  return arena.bytes();
}

DeviceDataset::DeviceDataset(const Dataset& data, DeviceContext& context, Stream& stream, GatherRows gather)
    : data_(&data), gather_(std::move(gather)) {
  const auto fields = data.stored();
  if (bytes_of(data) == 0 || fields.size() != data.fields().size())
    throw LogicError("a dataset that does not say how it is stored was to lie on a device");
  ArenaPlan arena;
  const auto offsets = places_of(fields, arena);
  memory_ = context.allocate(arena.bytes());
  for (std::size_t i = 0; i < fields.size(); ++i) {
    std::byte* const there = memory_.data() + offsets[i];
    context.copy(fields[i].bytes.data(), there, fields[i].bytes.size(), stream);
    kept_.push_back(kept_field(fields[i], data.size(), there));
  }
  stream.synchronize();
}

void DeviceDataset::gather(const std::uint64_t* request, const Batch& batch, Stream& stream) const {
  gather::Rows rows{};
  rows.request = request;
  rows.weights = batch.weights().pointer<float>();
  rows.row_count = static_cast<std::int64_t>(batch.capacity());
  rows.per_row = 1;  // the weight
  const auto fields = data_->fields();
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    gather::KeptField column = kept_[i];
    column.to = batch.field(fields[i].name).data();
    rows.per_row += column.elements;
    rows.fields[rows.field_count++] = column;
  }
  gather_(rows, stream);
}

}  // namespace ronda
