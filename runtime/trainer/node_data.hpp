#pragma once
#include <filesystem>

#include <ronda/collectives/communicator.hpp>
#include <ronda/data/mnist.hpp>

namespace ronda {

/// load_mnist for all ranks at once: of each node's ranks that name the same folder the first reads and unpacks the
/// files, and hands them to the others through the node's memory. Collective; throws InputError, agreed, as load_mnist.
[[nodiscard]] Mnist load_mnist(const Communicator& communicator, const std::filesystem::path& directory);

}  // namespace ronda
