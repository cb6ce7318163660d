#include <ronda/core/error.hpp>
#include <ronda/data/batch.hpp>
#include <ronda/data/dataset.hpp>

#include <algorithm>
#include <cstring>

namespace ronda {
namespace {

TensorDesc of_batch(const Field& field, std::size_t capacity) {
  std::vector<std::int64_t> extents{static_cast<std::int64_t>(capacity)};
  extents.insert(extents.end(), field.shape.begin(), field.shape.end());
  return {Shape(extents), field.dtype, {}};
}

/// The fields, and the weights.
std::vector<TensorDesc> tensors_of(std::span<const Field> fields, std::size_t capacity) {
  std::vector<TensorDesc> descs;
  for (const auto& field : fields) descs.push_back(of_batch(field, capacity));
  descs.push_back(of_batch({"weights", Shape{}, DType::float32}, capacity));
  return descs;
}

}  // namespace

std::size_t Batch::bytes_of(std::span<const Field> fields, std::size_t capacity) {
  ArenaPlan plan;
  for (const auto& desc : tensors_of(fields, capacity)) plan.reserve(desc.bytes());
  return plan.bytes();
}

Batch::Batch(std::span<const Field> fields, std::size_t capacity) : Batch(fields, capacity, Allocate(Buffer::host)) {}

Batch::Batch(std::span<const Field> fields, std::size_t capacity, DeviceContext& context)
    : Batch(fields, capacity, Allocate([&](std::size_t bytes) { return context.allocate(bytes); })) {}

Batch Batch::staging(std::span<const Field> fields, std::size_t capacity, DeviceContext& context) {
  Batch batch(fields, capacity, Allocate([&](std::size_t bytes) { return context.allocate_staging(bytes); }));
  batch.pinned_ = true;
  return batch;
}

Batch Batch::of_samples(const Dataset& data, std::size_t capacity) {
  Batch batch(data.fields(), capacity, Allocate([](std::size_t) { return Buffer(); }));
  batch.source_ = &data;
  batch.request_.resize(1 + capacity);
  return batch;
}

Batch::Batch(std::span<const Field> fields, std::size_t capacity, const Allocate& allocate) : capacity_(capacity) {
  const std::vector<TensorDesc> descs = tensors_of(fields, capacity);
  ArenaPlan plan;
  std::vector<std::size_t> offsets;
  for (const auto& desc : descs) offsets.push_back(plan.reserve(desc.bytes()));
  memory_ = allocate(plan.bytes());
  const auto at = [&](std::size_t offset) { return memory_.data() == nullptr ? nullptr : memory_.data() + offset; };

  for (std::size_t i = 0; i < fields.size(); ++i) {
    names_.push_back(fields[i].name);
    tensors_.emplace_back(descs[i], at(offsets[i]), memory_.device());
  }
  weights_ = Tensor(descs.back(), at(offsets.back()), memory_.device());
}

void Batch::check_alike(const Batch& other) const {
  if (source_ != nullptr || other.source_ != nullptr) throw LogicError("a batch that has no values was to be copied");
  if (other.names_ != names_ || other.memory_.bytes() != memory_.bytes())
    throw LogicError("a batch was copied to one of other fields or another capacity");
}

void Batch::copy_from(const Batch& other) {
  check_alike(other);
  std::memcpy(memory_.data(), other.memory_.data(), memory_.bytes());
  real_ = other.real_;
  first_row_ = other.first_row_;
}

void Batch::copy_from(const Batch& other, DeviceContext& context, Stream& stream) {
  check_alike(other);
  context.copy(other.memory_.data(), memory_.data(), memory_.bytes(), stream);
  real_ = other.real_;
  first_row_ = other.first_row_;
}

const Tensor& Batch::field(std::string_view name) const {
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (found != names_.end()) return tensors_[static_cast<std::size_t>(found - names_.begin())];
  std::string known;
  for (const auto& each : names_) known += (known.empty() ? "" : ", ") + each;
  throw InputError("a batch has no field '" + std::string(name) + "'; this dataset's are " + known);
}

void Batch::set_real(std::size_t real) {
  if (real > capacity_)
    throw LogicError("a batch of " + std::to_string(capacity_) + " rows cannot hold " + std::to_string(real) +
                     " samples");
  real_ = real;
  if (source_ != nullptr) {
    request_[0] = real;
    return;
  }
  std::ranges::fill(weights_.as<float>().first(real), 1.0F);
  clear_padding_weights();
}

void Batch::clear_padding_weights() { std::ranges::fill(weights_.as<float>().subspan(real_), 0.0F); }

void Batch::set_samples(std::span<const std::uint64_t> rows, std::size_t real) {
  if (source_ == nullptr || rows.size() != capacity_)
    throw LogicError("a batch of " + std::to_string(capacity_) + " rows was to name " + std::to_string(rows.size()) +
                     " samples");
  std::copy(rows.begin(), rows.end(), request_.begin() + 1);
  set_real(real);
}

}  // namespace ronda
