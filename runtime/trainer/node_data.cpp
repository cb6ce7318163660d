#include <ronda/collectives/phase.hpp>
#include <ronda/runtime/trainer/node_data.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ronda {
namespace {

/// The extents of all axes tell how much is to come.
void hand_out(IdxArray& array, Communicator& sharers) {
  std::array<std::int64_t, 1 + Shape::capacity> extents{array.shape.rank()};
  std::ranges::copy(array.shape, extents.begin() + 1);
  sharers.broadcast(Tensor(std::span(extents)));
  array.shape = Shape(std::span(extents).subspan(1, static_cast<std::size_t>(extents[0])));
  if (sharers.rank() != 0) array.memory = Buffer::host(static_cast<std::size_t>(array.shape.count()));
  sharers.broadcast(Tensor(array.values()));
}

/// This node's ranks that were given the same folder.
Communicator sharers_of(const std::filesystem::path& directory, const Communicator& communicator) {
  const Communicator node = communicator.split(communicator.topology().node, communicator.rank());
  const std::vector<std::string> folders = node.gather_texts(directory.string());
  const auto first = std::ranges::find(folders, directory.string());
  return node.split(static_cast<int>(first - folders.begin()), node.rank());
}

}  // namespace

Mnist load_mnist(const Communicator& communicator, const std::filesystem::path& directory) {
  Communicator sharers = sharers_of(directory, communicator);
  MnistFiles files;
  agree(communicator, [&] {
    const Phase phase(communicator, Activity::starting);
    if (sharers.rank() == 0) files = read_mnist(directory);
  });
  if (sharers.size() > 1)
    for (IdxArray* array : {&files.train_images, &files.train_labels, &files.test_images, &files.test_labels})
      hand_out(*array, sharers);
  std::optional<Mnist> mnist;
  agree(communicator, [&] { mnist.emplace(make_mnist(std::move(files), directory)); });
  return std::move(*mnist);
}

}  // namespace ronda
