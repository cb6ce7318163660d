#include "source.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <ronda/core/cores.hpp>
#include <ronda/core/text.hpp>
#include <ronda/data/cifar.hpp>
#include <ronda/data/csv.hpp>
#include <ronda/data/image_folder.hpp>
#include <ronda/data/labelled_text.hpp>
#include <ronda/data/mnist.hpp>

#include "../tool.hpp"
#include "../transforms.hpp"

namespace ronda::apps {
namespace {

std::size_t readers(const DataPlace& place) {
  return place.readers > 0 ? place.readers : std::min(static_cast<std::size_t>(cores_of_process()), std::size_t{64});
}

/// Reads one sample, as if nothing were skipped, for what is said of it.
void read_alone(const Dataset& data, std::uint64_t sample) {
  Batch batch(data.fields(), 1);
  data.read({.samples = std::span(&sample, 1)}, batch);
}

Checked check_pictures(const DataPlace& place, const Tell& tell, Progress& progress) {
  const ImageFolder pictures(place.path, {.size = 1, .resize = 1, .readers = readers(place), .skip_damaged = true});
  const ImageFolder strict(place.path, {.size = 1, .resize = 1, .damage_remedy = "mend the file, or remove it"});
  constexpr std::size_t at_once = 64;
  Batch batch(pictures.fields(), at_once);
  std::vector<std::uint64_t> samples;
  std::size_t told = 0;
  for (std::uint64_t sample = 0; sample < pictures.size(); ++sample) {
    samples.push_back(sample);
    if (samples.size() < at_once && sample + 1 < pictures.size()) continue;
    pictures.read({.samples = samples}, batch);
    samples.clear();
    const std::vector<std::uint64_t> damaged = pictures.damaged();
    for (; told < damaged.size(); ++told) try {
        read_alone(strict, damaged[told]);
      } catch (const InputError& error) {
        tell(error);
      }
    progress.at(sample + 1, pictures.size());
  }
  return {pictures.size(), pictures.passed_over()};
}

Checked check_mnist(const DataPlace& place, const Tell& tell, Progress&) {
  bool sound = true;
  const auto try_to = [&](const auto& work) {
    try {
      work();
    } catch (const InputError& error) {
      sound = false;
      tell(error);
    }
  };
  for (const std::string part : {"train", "t10k"})
    for (const auto& [name, rank] : {std::pair{"-images-idx3-ubyte", 3}, {"-labels-idx1-ubyte", 1}}) {
      std::error_code ignored;
      std::filesystem::path file = place.path / (part + name);
      if (!std::filesystem::exists(file, ignored)) file += ".gz";
      try_to([&, rank = rank] { static_cast<void>(read_idx(file, rank)); });
    }
  std::size_t samples = 0;
  if (sound)  // each by itself; then whether they belong together
    try_to([&] {
      const Mnist mnist = load_mnist(place.path);
      samples = mnist.train.size() + mnist.test.size();
    });
  return {samples};
}

Checked check_table(const DataPlace& place, const Tell& tell, Progress&) {
  std::size_t damaged = 0;
  CsvOptions options{.separator = place.separator, .ignore = place.ignore};
  options.on_damaged = [&](const InputError& error) {
    ++damaged;
    tell(error);
  };
  const CsvTable table = read_csv(place.path, options);
  return {table.rows() + damaged, table.remark()};
}

Checked check_texts(const DataPlace& place, const Tell& tell, Progress&) {
  std::size_t damaged = 0;
  LabelledTextOptions options;
  options.on_damaged = [&](const InputError& error) {
    ++damaged;
    tell(error);
  };
  return {read_labelled_text(place.path, options).texts.size() + damaged};
}

template <class T>
OpenData opened(T data, bool bytes, std::vector<std::string> classes = {}) {
  auto owner = std::make_shared<const T>(std::move(data));
  const Dataset* const view = owner.get();
  return {{std::move(owner)}, view, bytes, std::move(classes)};
}

OpenData open_pictures(const DataPlace& place, bool vary) {
  auto pictures = std::make_shared<const ImageFolder>(
      place.path,
      ImageFolderOptions{.size = place.size,
                         .resize = place.size * 8 / 7,
                         .random_crop = vary,
                         .readers = readers(place),
                         .damage_remedy = "mend the file, or remove it; ronda_data check lists all that are damaged"});
  const Dataset* const view = pictures.get();
  std::vector<std::string> classes = pictures->classes();
  std::string remark = pictures->passed_over();
  return {{std::move(pictures)}, view, true, std::move(classes), std::move(remark)};
}

OpenData open_table(const DataPlace& place, bool) {
  const CsvTable table = read_csv(place.path, {.separator = place.separator, .ignore = place.ignore});
  if (table.columns.size() < 2) throw InputError(place.path.string() + " has one column, and no inputs for it");
  const std::size_t target = place.target.empty() ? table.columns.size() - 1 : table.column(place.target);
  std::vector<float> inputs, targets;
  for (std::size_t i = 0; i < table.values.size(); ++i)
    (i % table.columns.size() == target ? targets : inputs).push_back(static_cast<float>(table.values[i]));
  OpenData data = opened(MemoryDataset(std::move(inputs), Shape{static_cast<std::int64_t>(table.columns.size()) - 1},
                                       std::move(targets), Shape{1}),
                         false);
  data.remark = table.remark();
  return data;
}

template <class Both>
OpenData one_part(Both both, const DataPlace& place, std::vector<std::string> classes = {}) {
  if (place.part == "test") return opened(std::move(both.test), true, std::move(classes));
  return opened(std::move(both.train), true, std::move(classes));
}

}  // namespace

const std::vector<DataFormat>& data_formats() {
  static const std::vector<DataFormat> all{
      {"images", "a folder of pictures with a subfolder a class", check_pictures, open_pictures, imagenet_augmentation,
       imagenet_normalized},
      {"cifar10", "the folder of CIFAR-10's binary files",
       [](const DataPlace& place, const Tell& tell, Progress&) { return Checked{check_cifar10(place.path, tell)}; },
       [](const DataPlace& place, bool) {
         return one_part(load_cifar10(place.path), place, cifar10_classes(place.path));
       },
       cifar10_augmentation, cifar10_normalized},
      {"cifar100", "the same of CIFAR-100",
       [](const DataPlace& place, const Tell& tell, Progress&) { return Checked{check_cifar100(place.path, tell)}; },
       [](const DataPlace& place, bool) { return one_part(load_cifar100(place.path), place); }, cifar10_augmentation,
       cifar10_normalized},
      {"mnist", "the folder of MNIST's four IDX files", check_mnist,
       [](const DataPlace& place, bool) { return one_part(load_mnist(place.path), place); },
       [] { return std::vector<Transform>(); }, nullptr},
      {"csv", "a table of numbers", check_table, open_table, nullptr, nullptr},
      {"text", "lines of a label, a tab and a text", check_texts, nullptr, nullptr, nullptr}};
  return all;
}

const DataFormat& data_format(const std::string& name) {
  const auto found = std::ranges::find(data_formats(), name, &DataFormat::name);
  if (found == data_formats().end())
    throw InputError("there is no format '" + excerpt(name) + "'; there are " +
                     listed(data_formats(), [](const DataFormat& each) { return each.name; }));
  return *found;
}

}  // namespace ronda::apps
