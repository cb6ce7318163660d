// ResNet-50 on folders of pictures, a subfolder a class, as ImageNet is kept.
#include <optional>

#include <ronda/core/error.hpp>
#include <ronda/data/image_folder.hpp>
#include <ronda/data/image_transforms.hpp>

#include "resnet.hpp"
#include "training_application.hpp"

namespace {

using namespace ronda;

struct FolderOptions {
  std::filesystem::path data;
  ImageFolderOptions pictures;
  double label_smoothing = 0.1;
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
  app.add_flag("--skip-damaged", options.pictures.skip_damaged, "Leave damaged pictures out, and count them")
      ->group(data);
  app.add_option("--label-smoothing", options.label_smoothing, "Share of the target that is spread over all classes")
      ->group("Learning");
  app.add_flag("--sync-batch-norm,!--no-sync-batch-norm", options.synchronized,
               "Normalise batches over all ranks: any number of ranks trains the same [no]")
      ->group("Model");
}

int run(World& world, apps::CommandLine& command_line, FolderOptions options) {
  options.pictures.resize = options.pictures.size * 8 / 7;
  ImageFolderOptions augmented = options.pictures;
  augmented.random_crop = true;
  std::optional<ImageFolder> train, test;
  agree(world.communicator(), [&] {
    train.emplace(options.data / "train", augmented);
    test.emplace(options.data / "val", options.pictures);
    if (train->classes() != test->classes())
      throw InputError(options.data.string() + ": train has " + std::to_string(train->classes().size()) +
                       " classes and val " + std::to_string(test->classes().size()) + ", or they differ in name");
  });
  command_line.training.variant = "size " + std::to_string(options.pictures.size) + ", " +
                                  std::to_string(train->classes().size()) + " classes" +
                                  (options.synchronized ? ", synchronised" : "");
  const Transform normalized = normalize({0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F});  // of ImageNet
  const TransformedDataset training(*train, {random_flip(), normalized}), tests(*test, {normalized});
  const auto classes = static_cast<std::int64_t>(train->classes().size());
  return apps::train(world, command_line, apps::ResNet(options.synchronized).large50(classes),
                     SoftmaxCrossEntropy(options.label_smoothing), training, tests,
                     {std::make_shared<TopKAccuracy>(classes > 5 ? 5 : 1)});
}

}  // namespace

int main(int argc, char** argv) {
  apps::CommandLine command_line("imagenet_resnet50", "Trains ResNet-50 on folders of pictures.",
                                 {.epochs = 90, .learning_rate = 0.1});
  FolderOptions options;
  add_options(command_line, options);
  return apps::launch_with(command_line, argc, argv, [&](World& world) { return run(world, command_line, options); });
}
