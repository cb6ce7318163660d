// Trains a dense layer on files of any size, for small_memory.sh: it takes little memory and time beside reading them.
#include <filesystem>
#include <memory>
#include <mutex>
#include <vector>

#include <CLI/CLI.hpp>

#include <ronda/core/error.hpp>
#include <ronda/data/dataset_part.hpp>
#include <ronda/data/hdf5.hpp>
#include <ronda/data/image_folder.hpp>
#include <ronda/data/numpy.hpp>
#include <ronda/layers/layers.hpp>
#include <ronda/layers/losses.hpp>

#include "../../apps/training_application.hpp"

namespace {

using namespace ronda;

struct FileOptions {
  std::filesystem::path data;
  std::int64_t size = 160;
  double hold = 0;
};

/// Keeps a copy of some samples of each batch, for ever: what a test of memory has to notice.
class KeepingDataset final : public Dataset {
 public:
  /// @param share  of the samples that are read, from 0 to 1
  KeepingDataset(const Dataset& data, double share) : data_(data), share_(share) {}

  [[nodiscard]] std::size_t size() const override { return data_.size(); }
  [[nodiscard]] std::span<const Field> fields() const override { return data_.fields(); }
  [[nodiscard]] std::uint64_t fingerprint() const override { return data_.fingerprint(); }
  void read(const SampleRequest& request, Batch& batch) const override {
    data_.read(request, batch);
    const std::lock_guard lock(mutex_);
    const std::span<const float> values = batch.input().as<float>();
    const auto kept = static_cast<std::size_t>(share_ * static_cast<double>(values.size()));
    if (kept > 0) copies_.emplace_back(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(kept));
  }

 private:
  const Dataset& data_;
  double share_;
  mutable std::mutex mutex_;
  mutable std::vector<std::vector<float>> copies_;
};

/// A folder of pictures; an HDF5 file of `input` and `target`; a folder of input.npy and target.npy.
std::unique_ptr<Dataset> open(const FileOptions& options) {
  if (options.data.extension() == ".h5") return open_hdf5(options.data, {{"input", "input"}, {"target", "target"}});
  if (std::filesystem::exists(options.data / "input.npy"))
    return std::make_unique<NumpyDataset>(read_npy(options.data / "input.npy"), read_npy(options.data / "target.npy"));
  return std::make_unique<ImageFolder>(options.data, ImageFolderOptions{.size = options.size, .resize = options.size});
}

}  // namespace

int main(int argc, char** argv) {
  apps::CommandLine command_line("train_files", "Trains a dense layer on files of any size, of two classes.",
                                 {.epochs = 1, .learning_rate = 0.001});
  FileOptions options;
  command_line.app().add_option("--data", options.data, "Pictures, an HDF5 file, or a folder of arrays")->required();
  command_line.app().add_option("--size", options.size, "Of pictures: their height and width");
  command_line.app()
      .add_option("--hold", options.hold, "Share of the samples that stays in memory, to see a test fail")
      ->check(CLI::Range(0.0, 1.0));
  return apps::launch_with(command_line, argc, argv, [&](World& world) {
    std::unique_ptr<Dataset> files;
    agree(world.communicator(), [&] { files = open(options); });
    const KeepingDataset data(*files, options.hold);
    const DatasetPart nothing(*files, {});
    return apps::train(world, command_line, Sequential(Flatten(), Dense(2)), SoftmaxCrossEntropy(), data, nothing);
  });
}
