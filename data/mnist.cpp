#include <ronda/core/error.hpp>
#include <ronda/core/multiversion.hpp>
#include <ronda/data/gather.hpp>
#include <ronda/data/mnist.hpp>

#include <algorithm>
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

/// The file of that name or its gzipped form.
std::filesystem::path find(const std::filesystem::path& directory, const std::string& name) {
  std::error_code ignored;
  for (const auto& candidate : {directory / name, directory / (name + ".gz")})
    if (std::filesystem::exists(candidate, ignored)) return candidate;
  throw InputError(directory.string() + " has neither " + name + " nor " + name +
                   ".gz; the folder has to hold MNIST's four files");
}

std::string images_of(const std::string& prefix) { return prefix + "-images-idx3-ubyte"; }
std::string labels_of(const std::string& prefix) { return prefix + "-labels-idx1-ubyte"; }

MnistDataset dataset(IdxArray images, IdxArray labels, const std::filesystem::path& directory,
                     const std::string& prefix) {
  return {std::move(images), std::move(labels),
          (directory / images_of(prefix)).string() + " with " + labels_of(prefix)};
}

}  // namespace

MnistDataset::MnistDataset(IdxArray images, IdxArray labels, std::string_view source)
    : pixels_(Buffer::host(images.values.size())),
      labels_(std::move(labels.values)),
      pixels_per_image_(static_cast<std::size_t>(images.shape[1] * images.shape[2])),
      fields_{Field{"input", Shape{images.shape[1], images.shape[2], 1}, DType::float32},
              Field{"target", Shape{}, DType::int32}} {
  const auto fail = [&](const std::string& what) { return InputError(std::string(source) + ": " + what); };
  if (images.shape[0] != labels.shape[0])
    throw fail("expected as many labels as images, found " + std::to_string(images.shape[0]) + " images and " +
               std::to_string(labels.shape[0]) + " labels; take both files from one set");
  if (images.values.empty())
    throw fail("expected images, found dimensions " + images.shape.text() + "; fetch the file anew");
  const auto bad = std::find_if(labels_.begin(), labels_.end(), [](std::uint8_t label) { return label >= classes; });
  if (bad != labels_.end())
    throw fail("expected labels from 0 to " + std::to_string(classes - 1) + ", found " + std::to_string(*bad) +
               " for sample " + std::to_string(bad - labels_.begin()) + "; fetch the file anew");
  std::copy(images.values.begin(), images.values.end(), reinterpret_cast<std::uint8_t*>(pixels_.data()));
}

void MnistDataset::read(const SampleRequest& request, Batch& batch) const {
  const std::span<const std::uint64_t> samples = request.samples;
  auto* inputs = batch.input().pointer<float>();
  auto* targets = batch.target().pointer<std::int32_t>();
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (i + 2 < samples.size()) prefetch(image(samples[i + 2]), pixels_per_image_);
    scale_to_unit(image(samples[i]), inputs, pixels_per_image_);
    inputs += pixels_per_image_;
    *targets++ = labels_[samples[i]];
  }
}

std::vector<StoredField> MnistDataset::stored() const {
  return {{std::span(pixels_.data(), pixels_.bytes()), Decode::unit},
          {std::as_bytes(std::span(labels_)), Decode::label}};
}

MnistFiles read_mnist(const std::filesystem::path& directory) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(directory, ignored))
    throw InputError("there is no folder " + directory.string() + "; name the one that holds MNIST's four files");
  const auto read = [&](const std::string& name, int rank) { return read_idx(find(directory, name), rank); };
  return {read(images_of("train"), 3), read(labels_of("train"), 1), read(images_of("t10k"), 3),
          read(labels_of("t10k"), 1)};
}

Mnist make_mnist(MnistFiles files, const std::filesystem::path& directory) {
  Mnist mnist{dataset(std::move(files.train_images), std::move(files.train_labels), directory, "train"),
              dataset(std::move(files.test_images), std::move(files.test_labels), directory, "t10k")};
  const Shape &train = mnist.train.fields()[0].shape, &test = mnist.test.fields()[0].shape;
  if (train != test)
    throw InputError(directory.string() + ": expected images of one size, found " + train.text() +
                     " for training and " + test.text() + " for testing; take all four files from one set");
  return mnist;
}

Mnist load_mnist(const std::filesystem::path& directory) { return make_mnist(read_mnist(directory), directory); }

}  // namespace ronda
