#include <ronda/core/error.hpp>
#include <ronda/core/multiversion.hpp>
#include <ronda/data/byte_images.hpp>
#include <ronda/data/gather.hpp>

#include <string>
#include <utility>

namespace ronda {
namespace {

RONDA_MULTIVERSION void scale_to_unit(const std::uint8_t* __restrict bytes, float* __restrict floats,
                                      std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) floats[i] = unit_of(bytes[i]);
}

/// Samples in random order are far apart in memory: asks for one while another is being converted.
void prefetch(const std::uint8_t* bytes, std::size_t count) {
  constexpr std::size_t cache_line = 64;
  for (std::size_t i = 0; i < count; i += cache_line) __builtin_prefetch(bytes + i);
}

}  // namespace

ByteImages::ByteImages(Buffer pixels, const Shape& image, std::vector<std::uint8_t> labels)
    : pixels_(std::move(pixels)),
      bytes_per_image_(static_cast<std::size_t>(image.count())),
      labels_(std::move(labels)),
      fields_{Field{"input", image, DType::float32}, Field{"target", Shape{}, DType::int32}} {
  if (pixels_.bytes() != labels_.size() * bytes_per_image_)
    throw LogicError(std::to_string(labels_.size()) + " images of " + image.text() + " were given " +
                     std::to_string(pixels_.bytes()) + " bytes");
}

void ByteImages::read(const SampleRequest& request, Batch& batch) const {
  const std::span<const std::uint64_t> samples = request.samples;
  auto* inputs = batch.input().pointer<float>();
  auto* targets = batch.target().pointer<std::int32_t>();
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (i + 2 < samples.size()) prefetch(image(samples[i + 2]), bytes_per_image_);
    scale_to_unit(image(samples[i]), inputs, bytes_per_image_);
    inputs += bytes_per_image_;
    *targets++ = labels_[samples[i]];
  }
}

std::vector<StoredField> ByteImages::stored() const {
  return {{std::span(pixels_.data(), pixels_.bytes()), Decode::unit},
          {std::as_bytes(std::span(labels_)), Decode::label}};
}

}  // namespace ronda
