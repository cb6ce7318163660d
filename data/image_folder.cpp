#include <ronda/core/error.hpp>
#include <ronda/core/hash.hpp>
#include <ronda/core/printable.hpp>
#include <ronda/data/detail/crop_box.hpp>
#include <ronda/data/detail/picture.hpp>
#include <ronda/data/detail/picture_list.hpp>
#include <ronda/data/detail/reader_team.hpp>
#include <ronda/data/detail/resample.hpp>
#include <ronda/data/image_folder.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <mutex>
#include <optional>
#include <set>

namespace ronda {
namespace {

enum class PictureFormat : std::uint8_t { jpeg, png };

std::optional<PictureFormat> format_of(std::span<const std::byte> file) {
  const auto begins_with = [&](std::initializer_list<int> magic) {
    return file.size() >= magic.size() && std::equal(magic.begin(), magic.end(), file.begin(),
                                                     [](int a, std::byte b) { return a == std::to_integer<int>(b); });
  };
  if (begins_with({0xff, 0xd8, 0xff})) return PictureFormat::jpeg;
  if (begins_with({0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'})) return PictureFormat::png;
  return std::nullopt;
}

void read_whole(const std::filesystem::path& path, std::vector<std::byte>& bytes) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file ? static_cast<std::streamoff>(file.tellg()) : -1;
  if (size < 0) throw PictureError("it cannot be read");
  bytes.resize(static_cast<std::size_t>(size));
  file.seekg(0);
  if (!file.read(reinterpret_cast<char*>(bytes.data()), size)) throw PictureError("it cannot be read");
}

void decode(std::span<const std::byte> file, Picture& picture) {
  const auto format = format_of(file);
  if (!format)
    throw PictureError("expected a JPEG or a PNG, found neither's first bytes in " + std::to_string(file.size()) +
                       " bytes");
  *format == PictureFormat::jpeg ? decode_jpeg(file, picture) : decode_png(file, picture);
}

/// The middle of a picture whose shorter side is resized to `resize`, as PyTorch's Resize and CenterCrop have it.
ResampleAxis middle(std::int64_t extent, std::int64_t shorter, const ImageFolderOptions& options) {
  const std::int64_t resized = extent == shorter ? options.resize : options.resize * extent / shorter;
  const double scale = static_cast<double>(extent) / static_cast<double>(resized);
  const auto begin = static_cast<double>(std::llrint(static_cast<double>(resized - options.size) / 2));
  return {begin * scale, scale, 0, extent};
}

ResampleAxis part(std::int64_t begin, std::int64_t extent, std::int64_t size) {
  return {static_cast<double>(begin), static_cast<double>(extent) / static_cast<double>(size), begin, begin + extent};
}

void check(const ImageFolderOptions& options) {
  constexpr std::int64_t most = 1 << 14;
  if (options.size < 1 || options.size > options.resize || options.resize > most)
    throw InputError("images are from 1 to .resize = " + std::to_string(options.resize) +
                     " pixels large, and that is at most " + std::to_string(most) +
                     ", found .size = " + std::to_string(options.size));
  constexpr std::size_t most_readers = 1024;
  if (options.readers < 1 || options.readers > most_readers)
    throw InputError("from 1 to " + std::to_string(most_readers) +
                     " threads read images, found .readers = " + std::to_string(options.readers));
  CropRange{options.least_area, options.least_ratio}.check("a folder of images");
}

}  // namespace

struct ImageFolder::Impl {
  Impl(const std::filesystem::path& folder, const ImageFolderOptions& given)
      : options(given),
        list(folder),
        fields{Field{"input", Shape{given.size, given.size, Picture::channels}},
               Field{"target", Shape{}, DType::int32}},
        team(given.readers),
        tools(given.readers) {}

  void read(const SampleRequest& request, Batch& batch);
  void read_row(std::size_t reader, std::size_t row, const SampleRequest& request, Batch& batch);
  void fill_damaged_rows(std::span<const std::uint64_t> samples, Batch& batch);

  /// What a reader decodes with.
  struct Tools {
    std::vector<std::byte> file;
    Picture picture;
    Resampler resample;
  };

  const ImageFolderOptions options;
  const PictureList list;
  const std::array<Field, 2> fields;

  std::mutex mutex;  ///< guards all below: one batch is read at a time
  ReaderTeam team;
  std::vector<Tools> tools;             ///< by reader
  std::vector<std::uint8_t> bad_rows;   ///< of the batch under way
  std::set<std::uint64_t> bad_samples;  ///< ever seen
};

void ImageFolder::Impl::read(const SampleRequest& request, Batch& batch) {
  const std::lock_guard lock(mutex);
  bad_rows.assign(request.samples.size(), 0);
  team.run(request.samples.size(), [&](std::size_t reader, std::size_t row) { read_row(reader, row, request, batch); });
  fill_damaged_rows(request.samples, batch);
}

void ImageFolder::Impl::read_row(std::size_t reader, std::size_t row, const SampleRequest& request, Batch& batch) {
  const std::uint64_t sample = request.samples[row];
  const PictureList::Entry& entry = list.entries[sample];
  batch.target().as<std::int32_t>()[row] = entry.label;
  auto& [file, picture, resample] = tools[reader];
  const auto error = [&](const std::exception& cause) {
    return printable((list.folder / entry.file).string()) + ", sample " + std::to_string(sample) + ": " + cause.what();
  };
  try {
    read_whole(list.folder / entry.file, file);
    decode(file, picture);
  } catch (const PictureError& damage) {
    if (!options.skip_damaged) throw InputError(error(damage) + "; .skip_damaged leaves such files out");
    bad_rows[row] = 1;
    return;
  } catch (const InputError& cause) {
    throw InputError(error(cause));
  }
  float* const pixels = batch.input().pointer<float>() + row * static_cast<std::size_t>(fields[0].shape.count());
  const std::int64_t height = picture.height, width = picture.width;
  if (options.random_crop && request.epoch > 0) {
    const CropBox box = random_box(height, width, {options.least_area, options.least_ratio},
                                   request.key(row, "random crop of an image folder"));
    resample(picture, part(box.top, box.height, options.size), part(box.left, box.width, options.size), options.size,
             pixels);
  } else {
    const std::int64_t shorter = std::min(height, width);
    resample(picture, middle(height, shorter, options), middle(width, shorter, options), options.size, pixels);
  }
}

/// Layers see no values there that the data does not have.
void ImageFolder::Impl::fill_damaged_rows(std::span<const std::uint64_t> samples, Batch& batch) {
  const auto sound = std::ranges::find(bad_rows, 0);
  const auto floats = static_cast<std::size_t>(fields[0].shape.count());
  float* const pixels = batch.input().pointer<float>();
  for (std::size_t row = 0; row < samples.size(); ++row) {
    if (bad_rows[row] == 0) continue;
    bad_samples.insert(samples[row]);
    batch.weights().as<float>()[row] = 0;
    float* const mine = pixels + row * floats;
    if (sound == bad_rows.end())
      std::fill_n(mine, floats, 0.0F);
    else
      std::copy_n(pixels + static_cast<std::size_t>(sound - bad_rows.begin()) * floats, floats, mine);
  }
}

ImageFolder::ImageFolder(const std::filesystem::path& folder, const ImageFolderOptions& options) {
  check(options);
  impl_ = std::make_unique<Impl>(folder, options);
}
ImageFolder::~ImageFolder() = default;

const std::vector<std::string>& ImageFolder::classes() const noexcept { return impl_->list.classes; }

std::filesystem::path ImageFolder::path(std::uint64_t sample) const {
  return impl_->list.folder / impl_->list.entries[sample].file;
}

std::vector<std::uint64_t> ImageFolder::damaged() const {
  const std::lock_guard lock(impl_->mutex);
  return {impl_->bad_samples.begin(), impl_->bad_samples.end()};
}

std::size_t ImageFolder::size() const { return impl_->list.entries.size(); }
std::span<const Field> ImageFolder::fields() const { return impl_->fields; }
void ImageFolder::read(const SampleRequest& request, Batch& batch) const { impl_->read(request, batch); }

std::uint64_t ImageFolder::fingerprint() const {
  Hash hash;
  hash.add(size()).add(fields()[0].shape.text());
  const std::size_t count = std::min(size(), fingerprint_samples);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t sample = spread(i, count, size());
    std::error_code ignored;  // a file that cannot be read is an error of reading it
    hash.add(impl_->list.entries[sample].file).add(std::filesystem::file_size(path(sample), ignored));
  }
  return hash.value();
}

}  // namespace ronda
