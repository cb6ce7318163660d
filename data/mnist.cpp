#include <ronda/core/error.hpp>
#include <ronda/data/detail/gzip_file.hpp>
#include <ronda/data/mnist.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ronda {
namespace {

std::uint32_t big_endian(const std::uint8_t* bytes) {
  return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 | std::uint32_t{bytes[2]} << 8 | bytes[3];
}

/// The magic number 0x00 0x00 0x08 (unsigned bytes) `rank`, then the extents, 32 bits each, big-endian.
Shape read_header(GzipFile& source, int rank) {
  std::array<std::uint8_t, 4 * (1 + Shape::capacity)> header{};
  const std::size_t wanted = 4 * (1 + static_cast<std::size_t>(rank));
  const std::size_t found = source.read(std::span(header).first(wanted));
  if (found < wanted)
    throw source.damaged("expected a header of " + std::to_string(wanted) + " bytes, found " + std::to_string(found));
  const std::uint32_t magic = big_endian(header.data()), expected = 0x800 + static_cast<std::uint32_t>(rank);
  if (magic != expected)
    throw source.damaged("expected magic number " + std::to_string(expected) + " (unsigned bytes, " +
                         std::to_string(rank) + " dimensions), found " + std::to_string(magic));
  std::vector<std::int64_t> extents;
  for (int axis = 0; axis < rank; ++axis) extents.push_back(big_endian(header.data() + 4 + 4 * axis));
  return Shape(extents);
}

/// The number of elements; a damaged header may promise more than there can be, also beside a 0.
std::size_t checked_count(const GzipFile& source, const Shape& shape) {
  constexpr std::int64_t most = std::int64_t{1} << 40;
  std::int64_t product = 1;
  bool empty = false;
  for (const std::int64_t extent : shape) {
    empty = empty || extent == 0;
    if (extent > 0 && (__builtin_mul_overflow(product, extent, &product) || product > most))
      throw source.damaged("its header promises dimensions " + shape.text());
  }
  return empty ? 0 : static_cast<std::size_t>(product);
}

void grow(Buffer& memory, std::size_t bytes) {
  Buffer larger = Buffer::host(bytes);
  if (memory.bytes() > 0) std::memcpy(larger.data(), memory.data(), memory.bytes());
  memory = std::move(larger);
}

}  // namespace

IdxArray read_idx(const std::filesystem::path& file, int rank) {
  GzipFile source(file);
  IdxArray array{read_header(source, rank), {}};
  const std::size_t count = checked_count(source, array.shape);
  // By pieces, so that a damaged header cannot make us ask for memory that the file does not fill.
  constexpr std::size_t piece = std::size_t{8} << 20;
  for (std::size_t have = 0; have < count; have = array.memory.bytes()) {
    grow(array.memory, std::min(count, 2 * have + piece));
    const std::size_t found = source.read(array.values().subspan(have));
    if (have + found < array.memory.bytes())
      throw source.damaged("expected " + std::to_string(count) + " bytes of data for dimensions " + array.shape.text() +
                           ", found only " + std::to_string(have + found));
  }
  std::uint8_t surplus;  // reading on also makes zlib check the sum at the end
  if (source.read({&surplus, 1}) != 0)
    throw source.damaged("there is more data than the " + std::to_string(count) + " bytes of dimensions " +
                         array.shape.text());
  return array;
}

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
