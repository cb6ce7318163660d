// A small convolutional network: three convolutions, two dense layers.
#include <ronda/layers/layers.hpp>

#include "mnist_application.hpp"

int main(int argc, char** argv) {
  using namespace ronda;
  apps::CommandLine options("mnist_cnn", "Trains a small convolutional network on MNIST.",
                            {.epochs = 2, .learning_rate = 0.1});
  return apps::train_on_mnist(options, argc, argv, [] {
    return Sequential(Conv2d(32, 3), ReLU(), MaxPool2d(2),  //
                      Conv2d(64, 3), ReLU(), MaxPool2d(2),  //
                      Conv2d(64, 3), ReLU(), Flatten(),     //
                      Dense(64), ReLU(), Dense(10));
  });
}
