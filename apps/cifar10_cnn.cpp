// A small convolutional network for colour images of 32 x 32 pixels: three convolutions, two dense layers.
#include "cifar_application.hpp"
#include "models.hpp"

int main(int argc, char** argv) {
  using namespace ronda;
  apps::CommandLine options("cifar10_cnn", "Trains a small convolutional network on CIFAR-10.",
                            {.epochs = 10, .learning_rate = 0.05});
  return apps::train_on_cifar10(options, argc, argv, false, [] { return apps::small_cnn(); });
}
