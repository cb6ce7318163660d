// mnist_cnn, which writes down when each step came by: STEP_TIMES=FILE gets a line a step of rank 0, in seconds.
#include <ronda/core/clock.hpp>
#include <ronda/data/mnist.hpp>
#include <ronda/layers/layers.hpp>
#include <ronda/layers/losses.hpp>

#include "../../apps/mnist_application.hpp"
#include "../support/wrapped_loss.hpp"

#include <cstdlib>
#include <fstream>
#include <iomanip>

namespace {

using namespace ronda;

/// Of rank 0, where STEP_TIMES names a file.
std::ofstream times_file(bool speaks) {
  std::ofstream times;
  const char* file = std::getenv("STEP_TIMES");
  if (file != nullptr && speaks) times.open(file);
  times << std::fixed << std::setprecision(6);
  return times;
}

}  // namespace

int main(int argc, char** argv) {
  apps::CommandLine options("step_times", "Trains the CNN on MNIST, and times it.",
                            {.epochs = 20, .learning_rate = 0.1});
  return apps::launch_with(options, argc, argv, [&](World& world) {
    const Mnist mnist = load_mnist(apps::find_mnist());
    Sequential model(Conv2d(32, 3), ReLU(), MaxPool2d(2), Conv2d(64, 3), ReLU(), MaxPool2d(2), Conv2d(64, 3), ReLU(),
                     Flatten(), Dense(64), ReLU(), Dense(10));
    std::ofstream times = times_file(world.rank() == 0);
    const test::WrappedLoss loss([&times](const test::WrappedLoss::Run& run) {
      if (run.pass.mode == Mode::training) times << steady_seconds() << '\n';
      run();
    });
    return apps::train(world, options, model, loss, mnist.train, mnist.test);
  });
}
