#include <ronda/collectives/phase.hpp>
#include <ronda/runtime/trainer/node_data.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

namespace ronda {
namespace {

/// The extents of all axes tell how much is to come.
void hand_out(IdxArray& array, Communicator& node) {
  std::array<std::int64_t, 1 + Shape::capacity> extents{array.shape.rank()};
  std::ranges::copy(array.shape, extents.begin() + 1);
  node.broadcast(Tensor(std::span(extents)));
  array.shape = Shape(std::span(extents).subspan(1, static_cast<std::size_t>(extents[0])));
  array.values.resize(static_cast<std::size_t>(array.shape.count()));
  node.broadcast(Tensor(std::span(array.values)));
}

}  // namespace

Mnist load_mnist(const Communicator& communicator, const std::filesystem::path& directory) {
  Communicator node = communicator.split(communicator.topology().node, communicator.rank());
  MnistFiles files;
  agree(communicator, [&] {
    const Phase phase(communicator, Activity::starting);
    if (node.rank() == 0) files = read_mnist(directory);
  });
  if (node.size() > 1)
    for (IdxArray* array : {&files.train_images, &files.train_labels, &files.test_images, &files.test_labels})
      hand_out(*array, node);
  std::optional<Mnist> mnist;
  agree(communicator, [&] { mnist.emplace(make_mnist(std::move(files), directory)); });
  return std::move(*mnist);
}

}  // namespace ronda
