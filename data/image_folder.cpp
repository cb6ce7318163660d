#include <ronda/core/error.hpp>
#include <ronda/core/hash.hpp>
#include <ronda/core/text.hpp>
#include <ronda/data/detail/picture.hpp>
#include <ronda/data/detail/picture_list.hpp>
#include <ronda/data/detail/picture_reader.hpp>
#include <ronda/data/detail/reader_team.hpp>
#include <ronda/data/image_folder.hpp>

#include <algorithm>
#include <array>
#include <mutex>
#include <set>

namespace ronda {
namespace {

void check(const ImageFolderOptions& options) {
  check_picture_sizes(options.size, options.resize);
  constexpr std::size_t most_readers = 1024;
  if (options.readers < 1 || options.readers > most_readers)
    throw InputError("from 1 to " + std::to_string(most_readers) + " threads read images, found " +
                     setting("readers", options.readers));
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
        readers(given.readers) {}

  void read(const SampleRequest& request, Batch& batch);
  void read_row(std::size_t reader, std::size_t row, const SampleRequest& request, Batch& batch);
  void read_pixels(PictureReader& reader, std::size_t row, const SampleRequest& request, float* pixels);
  void fill_damaged_rows(std::span<const std::uint64_t> samples, Batch& batch);

  const ImageFolderOptions options;
  const PictureList list;
  const std::array<Field, 2> fields;

  std::mutex mutex;  ///< guards all below: one batch is read at a time
  ReaderTeam team;
  std::vector<PictureReader> readers;
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
  float* const pixels = batch.input().pointer<float>() + row * static_cast<std::size_t>(fields[0].shape.count());
  const auto error = [&](const std::exception& cause) {
    return printable((list.folder / entry.file).string()) + ", sample " + std::to_string(sample) + ": " +
           message_of(cause);
  };
  try {
    read_pixels(readers[reader], row, request, pixels);
  } catch (const PictureError& damage) {
    if (!options.skip_damaged) throw InputError(error(damage) + "; " + options.damage_remedy);
    bad_rows[row] = 1;
  } catch (const InputError& cause) {
    throw InputError(error(cause));
  }
}

void ImageFolder::Impl::read_pixels(PictureReader& reader, std::size_t row, const SampleRequest& request,
                                    float* pixels) {
  const std::filesystem::path path = list.folder / list.entries[request.samples[row]].file;
  if (!options.random_crop || request.epoch == 0) return reader.read_middle(path, options.size, options.resize, pixels);
  const RngKey key = request.key(row, "random crop of an image folder");
  const CropRange range{options.least_area, options.least_ratio};
  reader.read_part(
      path, [&](std::int64_t height, std::int64_t width) { return random_box(height, width, range, key); },
      options.size, pixels);
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

std::string ImageFolder::passed_over() const { return impl_->list.passed_over_text(); }

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
