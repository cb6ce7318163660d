// Softmax regression: 784 pixels to 10 classes. The program to read first.
#include <ronda/layers/layers.hpp>

#include "mnist_application.hpp"

int main(int argc, char** argv) {
  ronda::apps::CommandLine options("mnist_softmax", "Trains a softmax regression (784-10) on MNIST.",
                                   {.epochs = 5, .learning_rate = 0.1});
  return ronda::apps::train_on_mnist(options, argc, argv,
                                     [] { return ronda::Sequential(ronda::Flatten(), ronda::Dense(10)); });
}
