#include "inputs.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include <ronda/core/error.hpp>
#include <ronda/data/cifar.hpp>
#include <ronda/data/csv.hpp>
#include <ronda/data/labelled_text.hpp>
#include <ronda/data/memory_dataset.hpp>
#include <ronda/data/mnist.hpp>
#include <ronda/data/picture_files.hpp>

namespace ronda::apps {
namespace {

namespace fs = std::filesystem;

/// The standard input by its usual name, where a program reads it to the end.
fs::path place_of(const fs::path& file) { return file == "-" ? "/dev/stdin" : file; }

/// What is read from it is gone: a pipe, a terminal.
bool is_stream(const fs::path& file) {
  std::error_code ignored;
  const fs::file_status status = fs::status(place_of(file), ignored);
  return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

/// As many of a file's first bytes as there are.
std::string first_bytes(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::error_code ignored;
  if (!file || fs::is_directory(path, ignored))
    throw InputError("cannot open " + path.string() + ": " + std::strerror(file ? EISDIR : errno));
  std::array<char, 4> bytes{};
  file.read(bytes.data(), bytes.size());
  return {bytes.data(), static_cast<std::size_t>(file.gcount())};
}

std::unique_ptr<const Dataset> read_images(const fs::path& file, const PictureInput& input) {
  IdxArray array = read_idx(file, 3);
  const std::size_t count = static_cast<std::size_t>(array.shape[0]);
  if (array.shape[1] != input.size || array.shape[2] != input.size)
    throw InputError(file.string() + ": expected images of " + std::to_string(input.size) + " x " +
                     std::to_string(input.size) + " pixels, found " + std::to_string(array.shape[1]) + " x " +
                     std::to_string(array.shape[2]));
  return std::make_unique<ByteImages>(std::move(array.memory), Shape{input.size, input.size, 1},
                                      std::vector<std::uint8_t>(count));
}

std::unique_ptr<const Dataset> read_rows(const fs::path& file, const TableInput& input) {
  const CsvTable table = read_csv(file, {.separator = input.separator, .only = input.columns});
  std::vector<float> numbers;
  numbers.reserve(table.values.size());
  std::vector<std::size_t> places;
  for (const std::string& name : input.columns) places.push_back(table.column(name));
  for (std::size_t row = 0; row < table.rows(); ++row)
    for (std::size_t i = 0; i < places.size(); ++i)
      numbers.push_back(static_cast<float>((table.row(row)[places[i]] - input.means[i]) / input.deviations[i]));
  return std::make_unique<MemoryDataset>(std::move(numbers), Shape{static_cast<std::int64_t>(places.size())},
                                         std::vector<std::int32_t>(table.rows()));
}

std::unique_ptr<const Dataset> read_lines(const fs::path& file, const TextInput& input) {
  LabelledText lines;
  lines.texts = read_text_lines(file);
  lines.labels.resize(lines.texts.size());
  return std::make_unique<MemoryDataset>(tokenized(lines, HashedWords(input.tokens), input.words));
}

/// The last bytes of each line, as many as the model reads at once; of an empty line its end, which is a byte too.
Samples read_bytes(const fs::path& file, const BytesInput& input) {
  const auto context = static_cast<std::size_t>(input.context);
  Samples samples;
  std::vector<std::int32_t> windows;
  for (const std::string& line : read_text_lines(file, TextEncoding::bytes)) {
    const std::string text = line.empty() ? "\n" : line.substr(line.size() - std::min(line.size(), context));
    for (const char byte : text) windows.push_back(static_cast<unsigned char>(byte));
    samples.steps.push_back(text.size() - 1);
    windows.resize(samples.steps.size() * context);  // no step reads what lies behind it
  }
  samples.owned.push_back(
      std::make_unique<MemoryDataset>(std::vector<Column>{{"input", Shape{input.context}, std::move(windows)}}));
  return samples;
}

}  // namespace

Inputs::Inputs(const SavedModel& model, std::vector<fs::path> files) : model_(model) {
  for (fs::path& file : files) {
    const Kind kind = kind_of(file);
    if (kind != Kind::pictures || parts_.empty() || parts_.back().kind != Kind::pictures) parts_.push_back({kind, {}});
    parts_.back().files.push_back(std::move(file));
  }
}

Inputs::Kind Inputs::kind_of(const fs::path& file) const {
  const bool stream = is_stream(file);
  if (std::holds_alternative<PictureInput>(model_.input)) {
    if (stream) throw InputError(file.string() + " is a pipe: " + model_.application + " takes files");
    return picture_kind_of(file);
  }
  if (!stream) static_cast<void>(first_bytes(place_of(file)));  // an error now, not after other files
  if (std::holds_alternative<BytesInput>(model_.input)) return Kind::bytes;
  return std::holds_alternative<TableInput>(model_.input) ? Kind::table : Kind::text;
}

Inputs::Kind Inputs::picture_kind_of(const fs::path& file) const {
  const auto& input = std::get<PictureInput>(model_.input);
  const std::string begin = first_bytes(file);
  for (const char* picture : {"\xff\xd8\xff", "\x89PNG", "P5", "P6"})
    if (begin.starts_with(picture)) return Kind::pictures;
  if (input.channels == 1 && (begin == std::string("\0\0\b\3", 4) || begin.starts_with("\x1f\x8b"))) return Kind::idx;
  if (model_.application.starts_with("cifar10") && file.extension() == ".bin") return Kind::cifar;
  throw InputError(file.string() + " is nothing that " + model_.application + " takes: pictures (JPEG, PNG, PGM, PPM)" +
                   (input.channels == 1                         ? ", and IDX files of images"
                    : model_.application.starts_with("cifar10") ? ", and CIFAR-10's binary files, .bin"
                                                                : ""));
}

Samples Inputs::open(std::size_t part) const {
  const auto& [kind, files] = parts_[part];
  Samples samples;
  switch (kind) {
    case Kind::table: samples.owned.push_back(read_rows(place_of(files[0]), std::get<TableInput>(model_.input))); break;
    case Kind::text: samples.owned.push_back(read_lines(place_of(files[0]), std::get<TextInput>(model_.input))); break;
    case Kind::bytes: samples = read_bytes(place_of(files[0]), std::get<BytesInput>(model_.input)); break;
    case Kind::cifar: samples.owned.push_back(std::make_unique<ByteImages>(read_cifar10_file(files[0]))); break;
    case Kind::idx: samples.owned.push_back(read_images(files[0], std::get<PictureInput>(model_.input))); break;
    case Kind::pictures: {
      const auto& input = std::get<PictureInput>(model_.input);
      samples.owned.push_back(std::make_unique<PictureFiles>(
          files, PictureFilesOptions{.size = input.size, .resize = input.resize, .channels = input.channels}));
    }
  }
  if (const auto* pictures = std::get_if<PictureInput>(&model_.input); pictures != nullptr && pictures->normalized)
    samples.owned.push_back(std::make_unique<TransformedDataset>(
        samples.data(), std::vector<Transform>{pictures->normalized->transform()}));
  return samples;
}

std::string Inputs::file(std::size_t part, std::size_t sample) const {
  const Part& its = parts_[part];
  return its.files[its.kind == Kind::pictures ? sample : 0].string();
}

std::size_t Inputs::number(std::size_t part, std::size_t sample) const {
  return parts_[part].kind == Kind::pictures ? 0 : sample;
}

}  // namespace ronda::apps
