#include <ronda/core/error.hpp>
#include <ronda/data/mnist.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ronda {
namespace {

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

MnistDataset dataset(IdxArray images, const IdxArray& labels, const std::filesystem::path& directory,
                     const std::string& prefix) {
  return {std::move(images), labels, (directory / images_of(prefix)).string() + " with " + labels_of(prefix)};
}

/// The labels. Throws where they and the images do not belong together.
std::vector<std::uint8_t> checked(const IdxArray& labels, const Shape& images, std::string_view source) {
  const auto fail = [&](const std::string& what) { return InputError(std::string(source) + ": " + what); };
  if (images[0] != labels.shape[0])
    throw fail("expected as many labels as images, found " + std::to_string(images[0]) + " images and " +
               std::to_string(labels.shape[0]) + " labels; take both files from one set");
  if (images.count() == 0) throw fail("expected images, found dimensions " + images.text() + "; fetch the file anew");
  const std::span<const std::uint8_t> values = labels.values();
  const auto bad = std::ranges::find_if(values, [](int label) { return label >= MnistDataset::classes; });
  if (bad != values.end())
    throw fail("expected labels from 0 to " + std::to_string(MnistDataset::classes - 1) + ", found " +
               std::to_string(*bad) + " for sample " + std::to_string(bad - values.begin()) + "; fetch the file anew");
  return {values.begin(), values.end()};
}

}  // namespace

MnistDataset::MnistDataset(IdxArray images, const IdxArray& labels, std::string_view source)
    : ByteImages(std::move(images.memory), Shape{images.shape[1], images.shape[2], 1},
                 checked(labels, images.shape, source)) {
  set_origin(std::string(source));
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
  Mnist mnist{dataset(std::move(files.train_images), files.train_labels, directory, "train"),
              dataset(std::move(files.test_images), files.test_labels, directory, "t10k")};
  const Shape &train = mnist.train.fields()[0].shape, &test = mnist.test.fields()[0].shape;
  if (train != test)
    throw InputError(directory.string() + ": expected images of one size, found " + train.text() +
                     " for training and " + test.text() + " for testing; take all four files from one set");
  return mnist;
}

Mnist load_mnist(const std::filesystem::path& directory) { return make_mnist(read_mnist(directory), directory); }

}  // namespace ronda
