// ResNet-18 for colour images of 32 x 32 pixels.
#include "cifar_application.hpp"
#include "models.hpp"

int main(int argc, char** argv) {
  using namespace ronda;
  apps::CommandLine options("cifar10_resnet", "Trains ResNet-18 on CIFAR-10.", {.epochs = 30, .learning_rate = 0.1});
  bool synchronized = true;
  apps::add_sync_batch_norm(options, synchronized);
  options.check_by([&] { options.training.variant = synchronized ? "" : ", ranks normalise for themselves"; });
  return apps::train_on_cifar10(options, argc, argv, true, [&] { return apps::ResNet(synchronized).small18(10); });
}
