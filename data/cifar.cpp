#include <ronda/core/data_files.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>
#include <ronda/data/cifar.hpp>
#include <ronda/data/detail/mapped_file.hpp>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace ronda {
namespace {

constexpr std::size_t image_side = 32, plane = image_side * image_side, channels = 3, pixel_bytes = channels * plane;

/// A version of the set.
struct Format {
  std::string name, folder;
  std::vector<int> classes;                    ///< of each label of a record
  std::size_t label;                           ///< which of them is the target
  std::vector<std::string> train_names, test;  ///< its files

  [[nodiscard]] std::size_t record_bytes() const { return classes.size() + pixel_bytes; }
};

/// A file of records.
class RecordFile {
 public:
  /// @param tell  is called for each damaged record
  RecordFile(const std::filesystem::path& path, const Format& format, FunctionRef<void(const InputError&)> tell)
      : path_(path), format_(format), bytes_(map_file(path)) {
    const std::size_t record = format.record_bytes(), rest = bytes_.bytes() % record;
    for (std::size_t i = 0; i < count(); ++i) check_labels(i, tell);
    if (rest != 0)
      tell(damaged(count(), "expected " + std::to_string(record) + " bytes, found " + std::to_string(rest) +
                                " before the file's end"));
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

  void check_labels(std::size_t record, FunctionRef<void(const InputError&)> tell) const {
    for (std::size_t i = 0; i < format_.classes.size(); ++i)
      if (const int label = at(record)[i]; label >= format_.classes[i])
        return tell(damaged(record, "expected a label from 0 to " + std::to_string(format_.classes[i] - 1) +
                                        ", found " + std::to_string(label)));
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
  ByteImages images(std::move(pixels), Shape{image_side, image_side, channels}, std::move(labels));
  const std::filesystem::path& first = files.front().path();
  images.set_origin(files.size() == 1 ? first.string() : first.parent_path().string());
  return images;
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

RecordFile open(const std::filesystem::path& folder, const std::string& name, const Format& format,
                FunctionRef<void(const InputError&)> tell) {
  std::error_code ignored;
  if (!std::filesystem::exists(folder / name, ignored))
    throw InputError("there is no " + (folder / name).string() + "; name the folder of " + format.name +
                     "'s binary version, which scripts/fetch_cifar.sh fetches");
  return {folder / name, format, tell};
}

constexpr auto throw_it = [](const InputError& damage) { throw InputError(damage); };

Cifar load(const std::filesystem::path& directory, const Format& format) {
  const std::filesystem::path folder = folder_in(directory, format);
  std::vector<RecordFile> train, test;
  for (const std::string& name : format.train_names) train.push_back(open(folder, name, format, throw_it));
  check_alike(train);
  for (const std::string& name : format.test) test.push_back(open(folder, name, format, throw_it));
  return {images_of(train), images_of(test)};
}

std::size_t check(const std::filesystem::path& directory, const Format& format,
                  FunctionRef<void(const InputError&)> tell) {
  const std::filesystem::path folder = folder_in(directory, format);
  std::vector<RecordFile> train, test;
  const auto try_to = [&](FunctionRef<void()> work) {
    try {
      work();
    } catch (const InputError& error) {
      tell(error);
    }
  };
  for (const std::string& name : format.train_names) try_to([&] { train.push_back(open(folder, name, format, tell)); });
  try_to([&] { check_alike(train); });
  for (const std::string& name : format.test) try_to([&] { test.push_back(open(folder, name, format, tell)); });
  std::size_t records = 0;
  for (const auto* files : {&train, &test})
    for (const RecordFile& file : *files) records += file.count();
  return records;
}

Format cifar10() {
  return {"CIFAR-10",
          "cifar-10-batches-bin",
          {10},
          0,
          {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"},
          {"test_batch.bin"}};
}

Format cifar100(CifarLabels labels) {
  return {"CIFAR-100",   "cifar-100-binary", {20, 100}, labels == CifarLabels::coarse ? 0U : 1U,
          {"train.bin"}, {"test.bin"}};
}

}  // namespace

ByteImages read_cifar10_file(const std::filesystem::path& file) {
  const Format format = cifar10();
  std::vector<RecordFile> files;
  files.emplace_back(file, format, throw_it);
  return images_of(files);
}

std::vector<std::string> cifar10_classes(const std::filesystem::path& directory) {
  const std::filesystem::path path = folder_in(directory, cifar10()) / "batches.meta.txt";
  note_data_file(path);
  std::ifstream file(path);
  std::vector<std::string> names;
  for (std::string name; std::getline(file, name);) {
    if (name.ends_with('\r')) name.pop_back();
    if (!name.empty()) names.push_back(name);
  }
  if (names.size() != 10) names.clear();
  return names;
}

Cifar load_cifar10(const std::filesystem::path& directory) { return load(directory, cifar10()); }

Cifar load_cifar100(const std::filesystem::path& directory, CifarLabels labels) {
  return load(directory, cifar100(labels));
}

std::size_t check_cifar10(const std::filesystem::path& directory, FunctionRef<void(const InputError&)> tell) {
  return check(directory, cifar10(), tell);
}

std::size_t check_cifar100(const std::filesystem::path& directory, FunctionRef<void(const InputError&)> tell) {
  return check(directory, cifar100(CifarLabels::fine), tell);
}

}  // namespace ronda
