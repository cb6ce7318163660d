#include <ronda/core/data_files.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>
#include <ronda/data/detail/picture_reader.hpp>
#include <ronda/data/picture_files.hpp>

#include <mutex>
#include <string>
#include <utility>

namespace ronda {
namespace {

PictureFilesOptions checked(const PictureFilesOptions& options) {
  check_picture_sizes(options.size, options.resize);
  if (options.channels != 1 && options.channels != Picture::channels)
    throw InputError("a picture has 1 or 3 channels, found " + setting("channels", options.channels));
  return options;
}

void write_grey(std::span<const float> colours, float* greys) {
  for (std::size_t i = 0; i < colours.size(); i += Picture::channels)
    *greys++ = 0.299F * colours[i] + 0.587F * colours[i + 1] + 0.114F * colours[i + 2];
}

}  // namespace

struct PictureFiles::Tools {
  std::mutex mutex;  ///< one batch is read at a time
  PictureReader reader;
  std::vector<float> colours;
};

PictureFiles::PictureFiles(std::vector<std::filesystem::path> files, const PictureFilesOptions& options)
    : files_(std::move(files)),
      options_(checked(options)),
      fields_{Field{"input", Shape{options.size, options.size, options.channels}},
              Field{"target", Shape{}, DType::int32}},
      tools_(std::make_unique<Tools>()) {
  for (const std::filesystem::path& file : files_) note_data_file(file);
  tools_->colours.resize(static_cast<std::size_t>(options.size * options.size * Picture::channels));
}
PictureFiles::~PictureFiles() = default;

void PictureFiles::read(const SampleRequest& request, Batch& batch) const {
  const std::lock_guard lock(tools_->mutex);
  const auto floats = static_cast<std::size_t>(fields_[0].shape.count());
  for (std::size_t row = 0; row < request.samples.size(); ++row) {
    const std::filesystem::path& file = files_[request.samples[row]];
    float* const pixels = batch.input().pointer<float>() + row * floats;
    const bool grey = options_.channels == 1;
    try {
      tools_->reader.read_middle(file, options_.size, options_.resize, grey ? tools_->colours.data() : pixels);
    } catch (const InputError& cause) {
      throw InputError(printable(file.string()) + ": " + cause.message());
    }
    if (grey) write_grey(tools_->colours, pixels);
    batch.target().as<std::int32_t>()[row] = 0;
  }
}

}  // namespace ronda
