// mnist_cnn, which writes down when each step came by: STEP_TIMES=FILE gets a line a step of rank 0, in seconds.
#include <ronda/core/clock.hpp>
#include <ronda/data/mnist.hpp>
#include <ronda/layers/layers.hpp>
#include <ronda/layers/softmax_cross_entropy.hpp>

#include "../../apps/mnist_application.hpp"

#include <cstdlib>
#include <fstream>
#include <iomanip>

namespace {

using namespace ronda;

class TimedLoss final : public Loss {
 public:
  explicit TimedLoss(bool speaks) {
    const char* file = std::getenv("STEP_TIMES");
    if (file != nullptr && speaks) times_.open(file);
    times_ << std::fixed << std::setprecision(6);
  }
  void plan(const TensorDesc& outputs, Planner& planner) override { planner.plan(loss_, outputs); }
  void bind(const Bindings& bindings) override { loss_.bind(bindings); }
  const Tensor& forward_backward(const Tensor& outputs, const Tensor& target, const Pass& pass) override {
    times_ << steady_seconds() << '\n';
    return loss_.forward_backward(outputs, target, pass);
  }
  [[nodiscard]] Metric metric() const override { return loss_.metric(); }
  void forward(const Tensor& outputs, const Tensor& target, const Pass& pass) override {
    loss_.forward(outputs, target, pass);
  }

 private:
  SoftmaxCrossEntropy loss_;
  std::ofstream times_;
};

}  // namespace

int main(int argc, char** argv) {
  apps::CommandLine options("step_times", "Trains the CNN on MNIST, and times it.",
                            {.epochs = 20, .learning_rate = 0.1});
  return apps::launch_with(options, argc, argv, [&](World& world) {
    const Mnist mnist = load_mnist(apps::find_mnist());
    Sequential model(Conv2d(32, 3), ReLU(), MaxPool2d(2), Conv2d(64, 3), ReLU(), MaxPool2d(2), Conv2d(64, 3), ReLU(),
                     Flatten(), Dense(64), ReLU(), Dense(10));
    TimedLoss loss(world.rank() == 0);
    return apps::train(world, options, model, loss, mnist.train, mnist.test);
  });
}
