// A multi-layer perceptron: 784-128 ReLU-10, or other hidden layers by --hidden.
#include <ronda/core/error.hpp>
#include <ronda/layers/layers.hpp>

#include "mnist_application.hpp"

int main(int argc, char** argv) {
  using namespace ronda;
  apps::CommandLine options("mnist_mlp", "Trains a multi-layer perceptron (784-128-10) on MNIST.",
                            {.epochs = 5, .learning_rate = 0.2});
  std::vector<std::int64_t> hidden{128};
  options.app()
      .add_option("--hidden", hidden, "Sizes of the hidden layers, e.g. 4096,4096,4096")
      ->delimiter(',')
      ->check(CLI::Range(1, 1 << 24))
      ->group("Model");
  return apps::train_on_mnist(options, argc, argv, [&] {
    Sequential model;
    model.add(Flatten());
    for (const std::int64_t size : hidden) {
      options.training.variant += ", hidden " + std::to_string(size);
      model.add(Dense(size));
      model.add(ReLU());
    }
    model.add(Dense(10));
    return model;
  });
}
