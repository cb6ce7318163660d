#include "mnist_application.hpp"

#include <sstream>

#include <ronda/core/error.hpp>
#include <ronda/layers/layers.hpp>
#include <ronda/runtime/trainer/node_data.hpp>

namespace ronda::apps {
namespace {

struct MnistOptions {
  std::filesystem::path data = find_mnist();
  double label_smoothing = 0;
};

void add_options(CommandLine& command_line, MnistOptions& options) {
  command_line.app()
      .add_option("--data", options.data, "Folder with the four MNIST files, gzipped or not")
      ->group("Data and length");
  command_line.app()
      .add_option("--label-smoothing", options.label_smoothing, "Share of the target that is spread over all classes")
      ->group("Learning");
  command_line.check_by([&options] {
    if (options.data.empty())
      throw InputError("the MNIST files are not beside this program; give their folder by --data DIR");
  });
}

Mnist load(const World& world, const std::filesystem::path& folder) {
  try {
    return load_mnist(world.communicator(), folder);
  } catch (const InputError& error) {
    InputError with_remedy(std::string(error.what()) + " (--data DIR names another folder)");
    if (error.agreed()) with_remedy.set_agreed();
    throw with_remedy;
  }
}

}  // namespace

std::filesystem::path find_mnist() { return find_shared("mnist"); }

int train_on_mnist(CommandLine& command_line, int argc, char** argv, const std::function<Sequential()>& make_model) {
  MnistOptions options;
  add_options(command_line, options);
  return launch_with(command_line, argc, argv, [&](World& world) {
    std::ostringstream smoothing;
    smoothing << "label smoothing " << options.label_smoothing;
    command_line.training.variant = smoothing.str() + command_line.training.variant;
    const Mnist mnist = load(world, options.data);
    Sequential model = make_model();
    SoftmaxCrossEntropy loss(options.label_smoothing);
    return train(world, command_line, model, loss, mnist.train, mnist.test);
  });
}

}  // namespace ronda::apps
