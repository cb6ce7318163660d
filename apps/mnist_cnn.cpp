// A small convolutional network: three convolutions, two dense layers.
#include "mnist_application.hpp"
#include "models.hpp"

int main(int argc, char** argv) {
  using namespace ronda;
  apps::CommandLine options("mnist_cnn", "Trains a small convolutional network on MNIST.",
                            {.epochs = 2, .learning_rate = 0.1});
  return apps::train_on_mnist(options, argc, argv, [] { return apps::small_cnn(); });
}
