#include "cifar_application.hpp"

#include <optional>

#include <CLI/CLI.hpp>

#include <ronda/core/error.hpp>
#include <ronda/data/cifar.hpp>
#include <ronda/layers/metrics.hpp>

#include "classification_options.hpp"
#include "model_card.hpp"
#include "transforms.hpp"

namespace ronda::apps {
namespace {

struct CifarOptions {
  std::filesystem::path data = find_shared("cifar10");
  bool augment = false;
};

void add_options(CommandLine& command_line, CifarOptions& options) {
  CLI::App& app = command_line.app();
  app.add_option("--data", options.data,
                 "Folder with CIFAR-10's binary files; scripts/fetch_cifar.sh 10 FOLDER fetches")
      ->group("Data and length");
  app.add_flag("--augment,!--no-augment", options.augment,
               std::string("Mirror images and shift them by up to 4 pixels, anew in each epoch [") +
                   (options.augment ? "yes]" : "no]"))
      ->group("Data and length");
  command_line.check_by([&options] {
    if (options.data.empty())
      throw InputError("no images: scripts/fetch_cifar.sh 10 FOLDER fetches CIFAR-10, and --data FOLDER names it");
  });
}

int run(World& world, CommandLine& command_line, const CifarOptions& options, const LabelSmoothing& smoothing,
        const Mixup& mixup, const std::function<Sequential()>& make_model) {
  std::optional<Cifar> cifar;
  agree(world.communicator(), [&] { cifar = load_cifar10(options.data); });
  if (const std::vector<std::string> names = cifar10_classes(options.data); names.empty())
    describe_model(command_line, {{"classes", 10}});
  else
    describe_model(command_line, {{"classes", names}});
  command_line.training.variant = (options.augment ? "augmented, " : "as they are, ") + smoothing.text() +
                                  mixup.text() + command_line.training.variant;
  std::vector<Transform> transforms;
  if (options.augment) transforms = cifar10_augmentation();
  transforms.push_back(cifar10_normalized());
  const TransformedDataset training(cifar->train, transforms), test(cifar->test, {cifar10_normalized()});
  const std::unique_ptr<const Dataset> mixed = mixup.of(training, 10), tests = mixup.of(test, 10);
  return train(world, command_line, make_model(), smoothing.loss(), mixed ? *mixed : training, tests ? *tests : test,
               {std::make_shared<ConfusionMatrix>()});
}

}  // namespace

int train_on_cifar10(CommandLine& command_line, int argc, char** argv, bool augment,
                     const std::function<Sequential()>& make_model) {
  CifarOptions options{.augment = augment};
  add_options(command_line, options);
  const LabelSmoothing smoothing(command_line);
  const Mixup mixup(command_line);
  return launch_with(command_line, argc, argv,
                     [&](World& world) { return run(world, command_line, options, smoothing, mixup, make_model); });
}

}  // namespace ronda::apps
