// A small convolutional network for colour images of 32 x 32 pixels: three convolutions, two dense layers.
#include <ronda/layers/layers.hpp>

#include "cifar_application.hpp"

int main(int argc, char** argv) {
  using namespace ronda;
  apps::CommandLine options("cifar10_cnn", "Trains a small convolutional network on CIFAR-10.",
                            {.epochs = 10, .learning_rate = 0.05});
  return apps::train_on_cifar10(options, argc, argv, false, [] {
    return Sequential(Conv2d(32, 3), ReLU(), MaxPool2d(2),  //
                      Conv2d(64, 3), ReLU(), MaxPool2d(2),  //
                      Conv2d(64, 3), ReLU(), Flatten(),     //
                      Dense(64), ReLU(), Dense(10));
  });
}
