#include "mnist_application.hpp"

#include <CLI/CLI.hpp>

#include <ronda/core/error.hpp>
#include <ronda/runtime/trainer/node_data.hpp>

#include "classification_options.hpp"
#include "model_card.hpp"

namespace ronda::apps {
namespace {

void add_data_option(CommandLine& command_line, std::filesystem::path& data) {
  command_line.app()
      .add_option("--data", data, "Folder with the four MNIST files, gzipped or not")
      ->group("Data and length");
  command_line.check_by([&data] {
    if (data.empty()) throw InputError("the MNIST files are not beside this program; give their folder by --data DIR");
  });
}

Mnist load(const World& world, const std::filesystem::path& folder) {
  try {
    return load_mnist(world.communicator(), folder);
  } catch (const InputError& error) {
    InputError with_remedy(error.message() + " (--data DIR names another folder)");
    if (error.agreed()) with_remedy.set_agreed();
    throw with_remedy;
  }
}

}  // namespace

std::filesystem::path find_mnist() { return find_shared("mnist"); }

int train_on_mnist(CommandLine& command_line, int argc, char** argv, const std::function<Sequential()>& make_model) {
  std::filesystem::path data = find_mnist();
  add_data_option(command_line, data);
  const LabelSmoothing smoothing(command_line);
  return launch_with(command_line, argc, argv, [&](World& world) {
    command_line.training.variant = smoothing.text() + command_line.training.variant;
    const Mnist mnist = load(world, data);
    describe_model(command_line, {{"classes", 10}});
    const Shape images = mnist.train.fields()[0].shape;
    if (images[0] == images[1]) describe_model(command_line, {{"size", images[0]}});
    return train(world, command_line, make_model(), smoothing.loss(), mnist.train, mnist.test);
  });
}

}  // namespace ronda::apps
