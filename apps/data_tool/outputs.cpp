#include "outputs.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/core/process.hpp>
#include <ronda/data/hdf5.hpp>
#include <ronda/data/numpy.hpp>
#include <ronda/data/picture_files.hpp>
#include <ronda/runtime/io/atomic_file.hpp>

namespace ronda::apps {
namespace {

namespace fs = std::filesystem;

/// Takes arrays, sample by sample.
class ArraySink {
 public:
  virtual ~ArraySink() = default;
  virtual void write(std::size_t array, std::span<const std::byte> samples) = 0;
  virtual void commit() = 0;
};

class NpySink final : public ArraySink {
 public:
  NpySink(const fs::path& folder, const std::vector<Hdf5Array>& arrays) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) throw InputError("cannot create the folder " + folder.string() + ": " + error.message());
    for (const Hdf5Array& array : arrays) {
      files_.push_back(std::make_unique<AtomicFile>(folder / (array.name + ".npy")));
      files_.back()->write(npy_header(array.shape, array.dtype));
    }
  }
  void write(std::size_t array, std::span<const std::byte> samples) override { files_[array]->write(samples); }
  void commit() override {
    for (const auto& file : files_) file->commit();
  }

 private:
  std::vector<std::unique_ptr<AtomicFile>> files_;
};

class Hdf5Sink final : public ArraySink {
 public:
  Hdf5Sink(const fs::path& file, const std::vector<Hdf5Array>& arrays)
      : file_(file), part_(file.string() + ".part." + random_token()) {
    check_creatable(file);
    writer_.emplace(part_, arrays);
  }
  ~Hdf5Sink() override {
    writer_.reset();
    std::error_code ignored;  // there is none after a commit
    fs::remove(part_, ignored);
  }
  void write(std::size_t array, std::span<const std::byte> samples) override { writer_->write(array, samples); }
  void commit() override {
    writer_->flush();
    writer_.reset();
    std::error_code error;
    fs::rename(part_, file_, error);
    if (error) throw ResourceError("cannot write " + file_.string() + ": " + error.message());
    synchronise_folder(file_.parent_path());
  }

 private:
  fs::path file_, part_;
  std::optional<Hdf5Writer> writer_;
};

Shape with_samples(const Shape& sample, std::size_t samples) {
  std::vector<std::int64_t> extents{static_cast<std::int64_t>(samples)};
  extents.insert(extents.end(), sample.begin(), sample.end());
  return Shape(extents);
}

}  // namespace

void write_arrays(const OpenData& data, const fs::path& to) {
  const std::span<const Field> fields = data.data->fields();
  const std::size_t all = data.data->size();
  std::vector<Hdf5Array> arrays;
  for (const Field& field : fields)
    arrays.push_back(
        {field.name, with_samples(field.shape, all), data.bytes && field.name == "input" ? DType::uint8 : field.dtype});
  std::unique_ptr<ArraySink> sink;
  if (to.extension() == ".h5" || to.extension() == ".hdf5")
    sink = std::make_unique<Hdf5Sink>(to, arrays);
  else
    sink = std::make_unique<NpySink>(to, arrays);
  constexpr std::size_t at_once = 64;
  Batch batch(fields, at_once);
  std::vector<std::byte> pixels;
  Progress progress("ronda_data", "samples");
  for (std::size_t first = 0; first < all; first += at_once) {
    std::vector<std::uint64_t> samples(std::min(at_once, all - first));
    std::iota(samples.begin(), samples.end(), first);
    data.data->read({.samples = samples}, batch);
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const auto count = samples.size() * static_cast<std::size_t>(fields[i].shape.count());
      const Tensor& values = batch.field(fields[i].name);
      if (arrays[i].dtype == DType::uint8 && values.dtype() == DType::float32) {
        pixels.resize(count);
        std::ranges::transform(values.as<const float>().first(count), pixels.begin(), [](float pixel) {
          return static_cast<std::byte>(std::lround(255 * std::clamp(pixel, 0.0F, 1.0F)));
        });
        sink->write(i, pixels);
      } else {
        sink->write(i, {values.data(), count * size_of(values.dtype())});
      }
    }
    progress.at(first + samples.size(), all);
  }
  sink->commit();
}

void write_contact_sheet(const Dataset& data, const SampleRequest& request, std::size_t columns,
                         const std::filesystem::path& file) {
  const Shape image = data.fields()[0].shape;
  if (image.rank() != 3 || (image[2] != 1 && image[2] != 3))
    throw InputError("a contact sheet is of images (height, width, 1 or 3), the data has " + image.text());
  const std::size_t count = request.samples.size(), across = std::min(columns, count);
  const std::size_t down = (count + across - 1) / across;
  const auto height = static_cast<std::size_t>(image[0]), width = static_cast<std::size_t>(image[1]),
             channels = static_cast<std::size_t>(image[2]);
  const std::size_t sheet_height = down * (height + 1) - 1, sheet_width = across * (width + 1) - 1;
  constexpr std::size_t most = std::size_t{1} << 28;  // pixels
  if (sheet_height > most / sheet_width)
    throw InputError("the contact sheet would have " + std::to_string(sheet_height) + " x " +
                     std::to_string(sheet_width) + " pixels; show fewer samples");
  Batch batch(data.fields(), count);
  data.read(request, batch);
  const auto pixels = batch.input().as<const float>();
  std::vector<std::uint8_t> sheet(sheet_height * sheet_width * 3);
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t y = 0; y < height; ++y)
      for (std::size_t x = 0; x < width; ++x)
        for (std::size_t c = 0; c < 3; ++c) {
          const float value = pixels[((i * height + y) * width + x) * channels + std::min(c, channels - 1)];
          const std::size_t row = i / across * (height + 1) + y, column = i % across * (width + 1) + x;
          sheet[(row * sheet_width + column) * 3 + c] =
              static_cast<std::uint8_t>(std::lround(255 * std::clamp(value, 0.0F, 1.0F)));
        }
  const std::vector<std::byte> png =
      encode_png(static_cast<std::uint32_t>(sheet_height), static_cast<std::uint32_t>(sheet_width), sheet);
  AtomicFile to(file);
  to.write(png);
  to.commit();
}

}  // namespace ronda::apps
