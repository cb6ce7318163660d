#pragma once
#include <filesystem>

#include <ronda/collectives/communicator.hpp>
#include <ronda/data/mnist.hpp>

namespace ronda {

/// load_mnist for all ranks at once: of the ranks of a node that name the same folder, the first reads and unpacks the
/// files and shares them with the others through the node's memory. Collective; throws InputError, agreed, as
/// load_mnist does.
[[nodiscard]] Mnist load_mnist(const Communicator& communicator, const std::filesystem::path& directory);

}  // namespace ronda
