// A multi-layer perceptron: 784-128 ReLU-10, or other hidden layers by --hidden.
#include <CLI/CLI.hpp>

#include <ronda/core/error.hpp>

#include "mnist_application.hpp"
#include "model_card.hpp"
#include "models.hpp"

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
    for (const std::int64_t size : hidden) options.training.variant += ", hidden " + std::to_string(size);
    apps::describe_model(options, {{"hidden", hidden}});
    return apps::flat_perceptron(hidden, 10);
  });
}
