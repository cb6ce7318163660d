#include <ronda/core/counted.hpp>
#include <ronda/core/error.hpp>
#include <ronda/data/cifar.hpp>
#include <ronda/data/detail/mapped_file.hpp>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace ronda {
namespace {

constexpr std::size_t side = 32, plane = side * side, channels = 3, pixel_bytes = channels * plane;

/// A version of the set.
struct Format {
  std::string name, folder;
  std::vector<int> classes;  ///< of each label of a record
  std::size_t label;         ///< which of them is the target

  [[nodiscard]] std::size_t record_bytes() const { return classes.size() + pixel_bytes; }
};

/// A file of records.
class RecordFile {
 public:
  RecordFile(const std::filesystem::path& path, const Format& format)
      : path_(path), format_(format), bytes_(map_file(path)) {
    const std::size_t record = format.record_bytes(), rest = bytes_.bytes() % record;
    if (rest != 0)
      throw damaged(count(), "expected " + std::to_string(record) + " bytes, found " + std::to_string(rest) +
                                 " before the file's end");
    for (std::size_t i = 0; i < count(); ++i) check_labels(i);
  }

  [[nodiscard]] std::size_t count() const { return bytes_.bytes() / format_.record_bytes(); }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::uint8_t label(std::size_t record) const { return at(record)[format_.label]; }

  /// Writes the record's pixels, each with its channels side by side.
  void write_pixels(std::size_t record, std::uint8_t* pixels) const {
    const std::uint8_t* const planes = at(record) + format_.classes.size();
    for (std::size_t i = 0; i < plane; ++i)
      for (std::size_t channel = 0; channel < channels; ++channel) *pixels++ = planes[channel * plane + i];
  }

 private:
  [[nodiscard]] const std::uint8_t* at(std::size_t record) const {
    return reinterpret_cast<const std::uint8_t*>(bytes_.data()) + record * format_.record_bytes();
  }

  void check_labels(std::size_t record) const {
    for (std::size_t i = 0; i < format_.classes.size(); ++i)
      if (const int label = at(record)[i]; label >= format_.classes[i])
        throw damaged(record, "expected a label from 0 to " + std::to_string(format_.classes[i] - 1) + ", found " +
                                  std::to_string(label));
  }

  /// @param record  from 0, as samples are counted
  [[nodiscard]] InputError damaged(std::size_t record, const std::string& what) const {
    return InputError(path_.string() + ", record " + std::to_string(record) + ": " + what +
                      "; the file is damaged, or not of " + format_.name +
                      "'s binary version: scripts/fetch_cifar.sh fetches that");
  }

  std::filesystem::path path_;
  const Format& format_;
  Buffer bytes_;
};

ByteImages images_of(const std::vector<RecordFile>& files) {
  std::vector<std::uint8_t> labels;
  for (const RecordFile& file : files)
    for (std::size_t i = 0; i < file.count(); ++i) labels.push_back(file.label(i));
  Buffer pixels = Buffer::host(labels.size() * pixel_bytes);
  auto* to = reinterpret_cast<std::uint8_t*>(pixels.data());
  for (const RecordFile& file : files)
    for (std::size_t i = 0; i < file.count(); ++i, to += pixel_bytes) file.write_pixels(i, to);
  return {std::move(pixels), Shape{side, side, channels}, std::move(labels)};
}

/// All files of a training set are of one length, so that one that was cut off between two records is seen.
void check_alike(const std::vector<RecordFile>& files) {
  for (const RecordFile& file : files)
    if (file.count() != files.front().count())
      throw InputError(file.path().string() + ": expected " +
                       counted(static_cast<std::int64_t>(files.front().count()), "record") + " as in " +
                       files.front().path().filename().string() + ", found " + std::to_string(file.count()) +
                       "; the file is damaged: fetch it anew");
}

/// Where the files of a version are.
std::filesystem::path folder_in(const std::filesystem::path& directory, const Format& format) {
  std::error_code ignored;
  std::filesystem::path inner = directory / format.folder;
  return std::filesystem::is_directory(inner, ignored) ? inner : directory;
}

Cifar load(const std::filesystem::path& directory, const Format& format, const std::vector<std::string>& train_names,
           const std::string& test_name) {
  std::error_code ignored;
  const std::filesystem::path folder = folder_in(directory, format);
  const auto open = [&](const std::string& name) {
    if (!std::filesystem::exists(folder / name, ignored))
      throw InputError("there is no " + (folder / name).string() + "; name the folder of " + format.name +
                       "'s binary version, which scripts/fetch_cifar.sh fetches");
    return RecordFile(folder / name, format);
  };
  std::vector<RecordFile> train, test;
  for (const std::string& name : train_names) train.push_back(open(name));
  check_alike(train);
  test.push_back(open(test_name));
  return {images_of(train), images_of(test)};
}

Format cifar10() { return {"CIFAR-10", "cifar-10-batches-bin", {10}, 0}; }

}  // namespace

ByteImages read_cifar10_file(const std::filesystem::path& file) {
  const Format format = cifar10();
  std::vector<RecordFile> files;
  files.emplace_back(file, format);
  return images_of(files);
}

std::vector<std::string> cifar10_classes(const std::filesystem::path& directory) {
  std::ifstream file(folder_in(directory, cifar10()) / "batches.meta.txt");
  std::vector<std::string> names;
  for (std::string name; std::getline(file, name);)
    if (!name.empty()) names.push_back(name);
  if (names.size() != 10) names.clear();
  return names;
}

Cifar load_cifar10(const std::filesystem::path& directory) {
  return load(directory, cifar10(),
              {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"},
              "test_batch.bin");
}

Cifar load_cifar100(const std::filesystem::path& directory, CifarLabels labels) {
  const std::size_t label = labels == CifarLabels::coarse ? 0 : 1;
  return load(directory, {"CIFAR-100", "cifar-100-binary", {20, 100}, label}, {"train.bin"}, "test.bin");
}

}  // namespace ronda
