// ResNet-50 on folders of pictures, a subfolder a class, as ImageNet is kept.
#include <algorithm>
#include <iostream>
#include <optional>
#include <set>
#include <string>

#include <CLI/CLI.hpp>

#include <ronda/collectives/world.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>
#include <ronda/data/image_folder.hpp>

#include "classification_options.hpp"
#include "model_card.hpp"
#include "models.hpp"
#include "training_application.hpp"
#include "transforms.hpp"

namespace {

using namespace ronda;

/// Warns of the damaged pictures that were left out on any rank. Collective.
void tell_damaged(const World& world, const ImageFolder& pictures) {
  TextWriter mine;
  for (const std::uint64_t sample : pictures.damaged()) mine << sample << " ";
  std::set<std::uint64_t> all;
  for (const std::string& samples : world.communicator().gather_texts(mine.str())) {
    TextReader numbers(samples);
    for (std::uint64_t sample = 0; numbers >> sample;) all.insert(sample);
  }
  if (world.rank() != 0 || all.empty()) return;
  std::cerr << "ronda: warning: damaged pictures were left out: " << all.size() << ", the first is "
            << pictures.path(*all.begin()).string() << std::endl;
}

struct FolderOptions {
  std::filesystem::path data;
  ImageFolderOptions pictures;
  bool synchronized = false;
};

void add_options(apps::CommandLine& command_line, FolderOptions& options) {
  CLI::App& app = command_line.app();
  const char* const data = "Data and length";
  app.add_option("--data", options.data,
                 "Folder with train/ and val/, which have a subfolder of JPEG or PNG for each class")
      ->required()
      ->group(data);
  app.add_option("--size", options.pictures.size, "Height and width of what the network sees")
      ->check(CLI::Range(32, 4096))
      ->group(data);
  app.add_option("--readers", options.pictures.readers, "Threads of a rank that decode pictures")
      ->check(CLI::Range(1, 1024))
      ->group(data);
  app.add_flag("--skip-damaged", options.pictures.skip_damaged, "Leave damaged pictures out, and say which")
      ->group(data);
  apps::add_sync_batch_norm(command_line, options.synchronized);
}

/// The first class that the one folder has and the other has not.
std::string class_alone_in(const ImageFolder& one, const ImageFolder& other) {
  const auto found = std::ranges::find_if(
      one.classes(), [&](const std::string& name) { return std::ranges::count(other.classes(), name) == 0; });
  return found == one.classes().end() ? "" : printable(*found);
}

void require_equal_classes(const ImageFolder& train, const ImageFolder& val, const std::filesystem::path& data) {
  if (train.classes() == val.classes()) return;
  const std::string in_train = class_alone_in(train, val), in_val = class_alone_in(val, train);
  throw InputError(printable(data.string()) + ": train has " + std::to_string(train.classes().size()) +
                   " classes and val " + std::to_string(val.classes().size()) +
                   (in_train.empty() ? "" : "; '" + in_train + "' is in train alone") +
                   (in_val.empty() ? "" : "; '" + in_val + "' is in val alone"));
}

int run(World& world, apps::CommandLine& command_line, const apps::LabelSmoothing& smoothing, const apps::Mixup& mixup,
        FolderOptions options) {
  options.pictures.resize = options.pictures.size * 8 / 7;
  ImageFolderOptions augmented = options.pictures;
  augmented.random_crop = true;
  std::optional<ImageFolder> train, test;
  agree(world.communicator(), [&] {
    train.emplace(options.data / "train", augmented);
    test.emplace(options.data / "val", options.pictures);
    require_equal_classes(*train, *test, options.data);
  });
  for (const ImageFolder* pictures : {&*train, &*test}) command_line.warn(pictures->passed_over());
  command_line.training.variant = "size " + std::to_string(options.pictures.size) + ", " +
                                  std::to_string(train->classes().size()) + " classes, " + smoothing.text() +
                                  mixup.text() + (options.synchronized ? ", synchronised" : "");
  apps::describe_model(command_line, {{"size", options.pictures.size}, {"classes", train->classes()}});
  std::vector<Transform> augmentation = apps::imagenet_augmentation();
  augmentation.push_back(apps::imagenet_normalized());
  const TransformedDataset training(*train, augmentation), tests(*test, {apps::imagenet_normalized()});
  const auto classes = static_cast<std::int64_t>(train->classes().size());
  std::vector<std::shared_ptr<const SummedMetric>> metrics;
  if (classes > 5) metrics.push_back(std::make_shared<TopKAccuracy>(5));
  const std::unique_ptr<const Dataset> mixed = mixup.of(training, classes), mixed_tests = mixup.of(tests, classes);
  const int status =
      apps::train(world, command_line, apps::ResNet(options.synchronized).large50(classes), smoothing.loss(),
                  mixed ? *mixed : training, mixed_tests ? *mixed_tests : tests, metrics);
  for (const ImageFolder* pictures : {&*train, &*test}) tell_damaged(world, *pictures);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  apps::CommandLine command_line("imagenet_resnet50", "Trains ResNet-50 on folders of pictures.",
                                 {.epochs = 90, .learning_rate = 0.1});
  FolderOptions options;
  add_options(command_line, options);
  const apps::LabelSmoothing smoothing(command_line, 0.1);
  const apps::Mixup mixup(command_line);
  return apps::launch_with(command_line, argc, argv,
                           [&](World& world) { return run(world, command_line, smoothing, mixup, options); });
}
