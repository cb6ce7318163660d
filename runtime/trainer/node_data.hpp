#pragma once
#include <filesystem>

#include <ronda/collectives/communicator.hpp>
#include <ronda/data/mnist.hpp>

namespace ronda {

/// load_mnist for all ranks at once: the first rank of each node reads and unpacks the files, and hands them to the
/// others of its node through the node's memory. Collective; throws InputError, agreed, as load_mnist.
[[nodiscard]] Mnist load_mnist(const Communicator& communicator, const std::filesystem::path& directory);

}  // namespace ronda
