#include <ronda/core/hash.hpp>
#include <ronda/data/dataset.hpp>

#include <algorithm>
#include <array>

namespace ronda {
namespace {

std::span<const std::byte> bytes_of(const Tensor& tensor) { return {tensor.data(), tensor.desc().bytes()}; }

/// So many samples, or fewer where they have more than fingerprint_bytes.
std::size_t bounded(std::size_t samples, const Dataset& data) {
  const std::size_t bytes = std::max<std::size_t>(Batch::bytes_of(data.fields(), 1), 1);
  return std::min({data.size(), samples, std::max<std::size_t>(Dataset::fingerprint_bytes / bytes, 2)});
}

}  // namespace

RngKey SampleRequest::key(std::size_t row, std::string_view stream) const {
  return {seed, Purpose::augmentation, Hash().add(epoch).add(samples[row]).add(stream).value()};
}

std::uint64_t Dataset::fingerprint() const { return fingerprint_of(fingerprint_samples); }

std::uint64_t Dataset::fingerprint_of(std::size_t samples) const {
  Hash hash;
  hash.add(size());
  for (const Field& field : fields()) hash.add(field.name).add(field.shape.text()).add(name_of(field.dtype));
  const std::size_t count = bounded(samples, *this);
  Batch batch(fields(), 1);
  for (std::size_t i = 0; i < count; ++i) {
    const std::array<std::uint64_t, 1> sample{spread(i, count, size())};
    batch.set_real(1);
    read({.samples = sample}, batch);
    for (const Field& field : fields()) hash.add(bytes_of(batch.field(field.name)));
    hash.add(bytes_of(batch.weights()));
  }
  return hash.value();
}

}  // namespace ronda
