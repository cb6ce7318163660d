#include <ronda/core/error.hpp>
#include <ronda/core/hash.hpp>
#include <ronda/core/text.hpp>
#include <ronda/data/mixup.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace ronda {
namespace {

/// The logarithm of a number from the gamma distribution of this shape (Marsaglia and Tsang, "A simple method for
/// generating gamma variables", TOMS 2000). Of a shape below 1 the number itself may underflow.
double log_gamma_draw(double shape, const RngKey& key) {
  const RngKey normals = key.derived("normal"), uniforms = key.derived("uniform"), powers = key.derived("power");
  const double d = (shape < 1 ? shape + 1 : shape) - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (std::uint64_t i = 0;; ++i) {
    const double x = normals.normal(i), v = std::pow(1 + c * x, 3);
    if (v <= 0 || std::log(uniforms.uniform(i)) >= x * x / 2 + d - d * v + d * std::log(v)) continue;
    constexpr double half_a_step = 1.0 / (1 << 25);  // of uniform, which may be 0
    return std::log(d * v) + (shape < 1 ? std::log(powers.uniform(0) + half_a_step) / shape : 0);
  }
}

/// From Beta(alpha, alpha).
float share_of(double alpha, const RngKey& key) {
  const double first = log_gamma_draw(alpha, key.derived("first")),
               second = log_gamma_draw(alpha, key.derived("second"));
  return static_cast<float>(1 / (1 + std::exp(second - first)));
}

/// Of a sample that counts.
void add_label(const Batch& from, std::size_t row, std::uint64_t sample, float probability, std::span<float> target) {
  if (probability == 0 || from.weights().as<const float>()[row] == 0) return;
  const std::int32_t label = from.target().as<const std::int32_t>()[row];
  if (label < 0 || std::cmp_greater_equal(label, target.size()))
    throw InputError("mixup: sample " + std::to_string(sample) + " has label " + std::to_string(label) + " among " +
                     std::to_string(target.size()) + " classes");
  target[static_cast<std::size_t>(label)] += probability;
}

}  // namespace

struct MixupDataset::Scratch {
  /// Room for the two samples of each row.
  void reserve(std::span<const Field> fields, std::size_t capacity) {
    if (own && own->capacity() >= capacity) return;
    own.emplace(fields, capacity);
    partners.emplace(fields, capacity);
    shares.resize(capacity);
  }

  std::mutex mutex;  ///< one batch is read at a time
  std::optional<Batch> own, partners;
  std::vector<std::uint64_t> samples;  ///< the partners
  std::vector<float> shares;           ///< λ
};

MixupDataset::MixupDataset(const Dataset& data, double alpha, std::int64_t classes)
    : data_(data),
      alpha_(alpha),
      classes_(static_cast<std::size_t>(std::max<std::int64_t>(classes, 0))),
      fields_(data.fields().begin(), data.fields().end()),
      scratch_(std::make_unique<Scratch>()) {
  if (!(alpha > 0) || !std::isfinite(alpha))
    throw InputError("the alpha of mixup is above 0 and finite, not " + shortest(alpha));
  if (classes < 1) throw InputError("mixup needs at least 1 class, not " + std::to_string(classes));
  for (Field& field : fields_) {
    if (field.name == "input" && field.dtype != DType::float32)
      throw InputError("mixup mixes inputs of float32, the data has " + std::string(name_of(field.dtype)));
    if (field.name != "target") continue;
    if (field.dtype != DType::int32 || field.shape.rank() != 0)
      throw InputError("mixup takes targets that are labels, int32 scalars, the data has " +
                       std::string(name_of(field.dtype)) + " " + field.shape.text());
    field = {"target", Shape{classes}, DType::float32};
  }
}
MixupDataset::~MixupDataset() = default;

void MixupDataset::read(const SampleRequest& request, Batch& batch) const {
  const std::lock_guard lock(scratch_->mutex);
  const std::size_t rows = request.samples.size();
  scratch_->reserve(data_.fields(), batch.capacity());
  Batch &own = *scratch_->own, &partners = *scratch_->partners;
  const std::span<float> shares(scratch_->shares);
  std::vector<std::uint64_t>& samples = scratch_->samples;
  own.set_real(rows);
  data_.read(request, own);
  const bool mixes = request.epoch > 0;
  if (mixes) {
    samples.resize(rows);
    for (std::size_t row = 0; row < rows; ++row) {
      const RngKey key = request.key(row, "mixup");
      const std::uint64_t partner = key.below(request.pool == nullptr ? size() : request.pool->size(), 0);
      samples[row] = request.pool == nullptr ? partner : request.pool->number(partner);
      shares[row] = share_of(alpha_, key);
    }
    partners.set_real(rows);
    data_.read({samples, request.epoch, request.seed, request.pool}, partners);
  }
  for (const Field& field : fields_)
    if (field.name != "target")
      std::memcpy(batch.field(field.name).data(), own.field(field.name).data(),
                  rows * static_cast<std::size_t>(field.shape.count()) * size_of(field.dtype));
  const auto floats = static_cast<std::size_t>(own.input().shape().without_batch().count());
  for (std::size_t row = 0; row < rows; ++row) {
    const auto target = batch.target().as<float>().subspan(row * classes_, classes_);
    std::ranges::fill(target, 0.0F);
    if (!mixes) {
      batch.weights().as<float>()[row] = own.weights().as<const float>()[row];
      add_label(own, row, request.samples[row], 1, target);
      continue;
    }
    const float share = shares[row], weight = own.weights().as<const float>()[row],
                other_weight = partners.weights().as<const float>()[row];
    const float both = weight == other_weight ? weight : share * weight + (1 - share) * other_weight;
    batch.weights().as<float>()[row] =
        both < smallest_weight ? 0 : both;  // a small share of one sample, and a weight of 0 of the other
    const float probability = weight == other_weight ? share : share * weight / both;
    add_label(own, row, request.samples[row], probability, target);
    add_label(partners, row, samples[row], 1 - probability, target);
    const float seen = weight == 0 && other_weight != 0 ? 0 : other_weight == 0 ? 1 : share;
    float* const mixed = batch.input().pointer<float>() + row * floats;
    const float* const other = partners.input().pointer<float>() + row * floats;
    for (std::size_t i = 0; i < floats; ++i) mixed[i] = seen * mixed[i] + (1 - seen) * other[i];
  }
}

std::uint64_t MixupDataset::fingerprint() const {
  Hash hash;
  hash.add(data_.fingerprint()).add(std::string_view("mixup")).add(std::bit_cast<std::uint64_t>(alpha_)).add(classes_);
  return hash.value();
}

}  // namespace ronda
