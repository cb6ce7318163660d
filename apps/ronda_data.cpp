// What is in data: checks it, converts it, shows what a network sees of it, times it. Needs no MPI.
#include <chrono>
#include <cmath>
#include <iostream>
#include <numeric>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>
#include <ronda/data/batch_plan.hpp>
#include <ronda/data/loader.hpp>
#include <ronda/data/transform.hpp>
#include <ronda/runtime/trainer/version.hpp>

#include "data_tool/outputs.hpp"
#include "data_tool/source.hpp"
#include "tool.hpp"

namespace {

using namespace ronda;

struct ReadingSpeed {
  std::size_t samples = 0;
  double seconds = 0;
  [[nodiscard]] double samples_per_second() const noexcept { return static_cast<double>(samples) / seconds; }
};

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Reads batches in random order, as a training does, for about `seconds`, after one that does not count.
/// @param seed  for the order and random changes
/// Throws as the dataset does.
ReadingSpeed measure_reading(const Dataset& data, std::size_t batch_size, double seconds, std::uint64_t seed,
                             apps::Progress& progress) {
  BatchLoader loader(data, SampleOrder(data.size(), seed, true), BatchPlan(data.size(), batch_size));
  static_cast<void>(loader.next());
  ReadingSpeed speed;
  const auto begin = std::chrono::steady_clock::now();
  do {
    speed.samples += loader.next().real();
    speed.seconds = seconds_since(begin);
    const double all = static_cast<double>(speed.samples) * seconds / speed.seconds;
    progress.at(speed.samples, static_cast<std::size_t>(std::ceil(all)));
  } while (speed.seconds < seconds);
  return speed;
}

struct SheetOptions {
  std::uint64_t first = 0, count = 64, columns = 8, epoch = 1, seed = 1;
  bool augment = true;
};

struct TimingOptions {
  std::size_t batch_size = 64;
  double seconds = 5;
  bool json = false;
};

int check(const apps::DataPlace& place) {
  std::size_t damaged = 0;
  apps::Checked checked;
  {
    apps::Progress progress("ronda_data", place.format == "images" ? "pictures" : "samples");
    const apps::Tell tell = [&](const InputError& error) {
      ++damaged;
      progress.clear();
      std::cout << error.what() << std::endl;
    };
    checked = apps::data_format(place.format).check(place, tell, progress);
  }
  if (damaged > 0)
    throw InputError(place.path.string() + " is damaged in " + counted(static_cast<std::int64_t>(damaged), "place") +
                     ", listed above");
  std::cout << place.path.string() << ": " << counted(static_cast<std::int64_t>(checked.samples), "sample")
            << ", all sound" << (checked.remark.empty() ? "" : "; ") << checked.remark << "\n";
  return 0;
}

int convert(const apps::DataPlace& place, const std::filesystem::path& to) {
  const apps::DataFormat& format = apps::data_format(place.format);
  if (!format.open) throw InputError(place.format + " cannot be converted: its tokens are the training's choice");
  const apps::OpenData data = format.open(place, false);
  require_apart({{"TO", to}, {"TO", to / "input.npy"}, {"TO", to / "target.npy"}});
  if (!data.remark.empty()) std::cerr << "ronda_data: " << data.remark << "\n";
  apps::write_arrays(data, to);
  std::cout << to.string() << ": " << counted(static_cast<std::int64_t>(data.data->size()), "sample");
  for (const Field& field : data.data->fields()) std::cout << ", " << field.name << " " << field.shape.text();
  std::cout << "\n";
  return 0;
}

int show(const apps::DataPlace& place, const std::filesystem::path& to, const SheetOptions& options) {
  const apps::DataFormat& format = apps::data_format(place.format);
  if (!format.augmentation) throw InputError(place.format + " has no images to be shown");
  const bool vary = options.augment && options.epoch > 0;
  const apps::OpenData source = format.open(place, vary);
  apps::require_output({"TO", to});
  const TransformedDataset data(*source.data, vary ? format.augmentation() : std::vector<Transform>());
  if (options.first >= data.size())
    throw InputError("--first is " + std::to_string(options.first) + ", and there are " + std::to_string(data.size()) +
                     " samples, from 0 on");
  std::vector<std::uint64_t> samples(std::min<std::uint64_t>(options.count, data.size() - options.first));
  std::iota(samples.begin(), samples.end(), options.first);
  apps::write_contact_sheet(data, {samples, options.epoch, options.seed}, options.columns, to);
  std::cout << to.string() << ": samples " << samples.front() << " to " << samples.back() << ", " << options.columns
            << " in a row\n";
  return 0;
}

/// With all that a training does to images.
int time_reading(const apps::DataPlace& place, const TimingOptions& options) {
  const apps::DataFormat& format = apps::data_format(place.format);
  if (!format.open) throw InputError(place.format + " cannot be timed: its tokens are the training's choice");
  const apps::OpenData source = format.open(place, true);
  std::vector<Transform> transforms = format.augmentation ? format.augmentation() : std::vector<Transform>();
  if (format.normalization) transforms.push_back(format.normalization());
  const TransformedDataset data(*source.data, std::move(transforms));
  apps::Progress progress("ronda_data", "samples");
  const ReadingSpeed speed = measure_reading(data, options.batch_size, options.seconds, 1, progress);
  progress.clear();
  if (options.json)
    std::cout << nlohmann::ordered_json{{"format", place.format},
                                        {"samples", speed.samples},
                                        {"seconds", speed.seconds},
                                        {"samples_per_second", speed.samples_per_second()},
                                        {"batch_size", options.batch_size}}
              << '\n';
  else
    std::cout << place.path.string() << ": " << std::llround(speed.samples_per_second()) << " samples/s, "
              << counted(static_cast<std::int64_t>(speed.samples), "sample") << " in random order, "
              << options.batch_size << " a batch\n";
  return 0;
}

int run(int argc, char** argv) {
  CLI::App app(
      "Looks at training data: whether it is sound, what a network sees of it, how fast it is read; makes arrays of "
      "it.",
      "ronda_data");
  app.set_version_flag("--version", "ronda_data (Ronda) " + version());
  app.require_subcommand(1);
  apps::DataPlace place;
  std::filesystem::path to;
  SheetOptions sheet;
  TimingOptions timing;
  std::string formats;
  for (const apps::DataFormat& format : apps::data_formats())
    formats += (formats.empty() ? "" : "; ") + format.name + ": " + format.help;
  const auto command = [&](const char* name, const char* what) {
    CLI::App* sub = app.add_subcommand(name, what);
    sub->option_defaults()->always_capture_default();
    sub->add_option("FORMAT", place.format, formats)->required();
    sub->add_option("PATH", place.path, "The data")->required();
    return sub;
  };
  CLI::App* checking = command("check", "Reads everything, and names each damaged file or record; then status 2");
  CLI::App* converting = command("convert", "Writes arrays of all samples, `input` and `target`");
  CLI::App* showing = command("show", "Writes images as a network sees them, side by side, as PNG");
  CLI::App* timed = command("time", "Reads samples as a training does, and says how many a second");
  converting->add_option("TO", to, "A file for HDF5, .h5 or .hdf5; otherwise a folder, for input.npy and target.npy")
      ->required();
  showing->add_option("TO", to, "The PNG file")->required();
  for (CLI::App* sub : {converting, showing, timed}) {
    sub->add_option("--part", place.part, "Of MNIST and CIFAR: train or test")->check(CLI::IsMember({"train", "test"}));
    sub->add_option("--size", place.size, "Of a folder of pictures: height and width of what is made of them")
        ->check(CLI::Range(1, 4096));
  }
  converting->add_option("--target", place.target, "Of a table: the column to predict [the last]")->default_str("");
  for (CLI::App* sub : {checking, converting, showing, timed})
    sub->add_option("--readers", place.readers, "Of a folder of pictures: threads that decode [one a processor]")
        ->check(CLI::Range(1, 1024))
        ->default_str("");
  for (CLI::App* sub : {checking, converting, timed}) {
    sub->add_option("--ignore", place.ignore, "Of a table: columns to leave out")->delimiter(',')->default_str("");
    apps::add_separator(*sub, place.separator, "Of a table: between two fields");
  }
  showing->add_option("--first", sheet.first, "Number of the first sample, from 0");
  showing->add_option("--count", sheet.count, "Samples")->check(CLI::Range(1, 1 << 16));
  showing->add_option("--columns", sheet.columns, "Images in a row")->check(CLI::Range(1, 1 << 16));
  showing->add_option("--epoch", sheet.epoch, "Of the training, from 1; 0: as tests see them");
  showing->add_option("--seed", sheet.seed, "Of the training");
  showing->add_flag("--augment,!--no-augment", sheet.augment, "With the random changes of a training [yes]");
  timed->add_option("--batch-size", timing.batch_size, "Samples")->check(CLI::Range(1, 1 << 20));
  timed->add_option("--seconds", timing.seconds, "How long")->check(CLI::Range(0.01, 3600.0));
  timed->add_flag("--json", timing.json, "Print a line of JSON");
  if (!apps::parse(app, argc, argv)) return 0;
  if (*checking) return check(place);
  if (*converting) return convert(place, to);
  if (*timed) return time_reading(place, timing);
  return show(place, to, sheet);
}

}  // namespace

int main(int argc, char** argv) {
  return apps::run_alone([&] { return run(argc, argv); });
}
