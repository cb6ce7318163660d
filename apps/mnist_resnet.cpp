// A residual network: eight convolutions, three shortcuts.
#include "mnist_application.hpp"
#include "models.hpp"

int main(int argc, char** argv) {
  using namespace ronda;
  apps::CommandLine options("mnist_resnet", "Trains a residual network on MNIST.",
                            {.epochs = 2, .learning_rate = 0.05});
  return apps::train_on_mnist(options, argc, argv, [] { return apps::residual_network(); });
}
