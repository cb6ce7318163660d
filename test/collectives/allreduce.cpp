// Every way to do an allreduce gives every rank the same sum, for the counts that break chunks, slices and parts.
#include "support/catch.hpp"
#include "support/ranks.hpp"

#include <ronda/collectives/communicator.hpp>
#include <ronda/runtime/core/error.hpp>

#include <algorithm>
#include <vector>

namespace ronda {
namespace {

/// Small integers: their sums are exact in float32.
template <class T>
T element_of(std::size_t i, int rank) {
  return static_cast<T>((i * 7 + static_cast<std::size_t>(rank) * 3) % 101);
}

template <class T>
T sum_of(std::size_t i, int ranks) {
  T sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum += element_of<T>(i, rank);
  return sum;
}

template <class T>
void fill(std::span<T> elements, int rank) {
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = element_of<T>(i, rank);
}

/// Elements that are not the sum over all ranks.
template <class T>
std::size_t wrong(std::span<const T> elements, int ranks) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < elements.size(); ++i) count += elements[i] != sum_of<T>(i, ranks) ? 1 : 0;
  return count;
}

template <class T>
std::span<T> elements(const Buffer& buffer, std::size_t count) {
  return {reinterpret_cast<T*>(buffer.data()), count};
}

constexpr AllreduceAlgorithm all_algorithms[] = {AllreduceAlgorithm::automatic, AllreduceAlgorithm::node,
                                                 AllreduceAlgorithm::ring, AllreduceAlgorithm::hierarchical,
                                                 AllreduceAlgorithm::mpi};
constexpr std::size_t counts[] = {0, 1, 7, (1 << 20) + 3};

bool possible(AllreduceAlgorithm algorithm, const Communicator& communicator) {
  return algorithm != AllreduceAlgorithm::node || communicator.topology().nodes == 1;
}

TEMPLATE_TEST_CASE("every algorithm gives every rank the same sum", "", float, double) {
  Communicator communicator = test::world().communicator();
  for (const std::size_t count : counts) {
    const Buffer memory = communicator.allocate(count * sizeof(TestType), Memory::node_shared);
    const auto data = elements<TestType>(memory, count);
    for (const AllreduceAlgorithm algorithm : all_algorithms) {
      if (!possible(algorithm, communicator)) continue;
      const auto reduction = communicator.plan({{Tensor(data)}, ReduceOp::sum, algorithm, "test"});
      for (int repetition = 0; repetition < 3; ++repetition) {
        fill(data, communicator.rank());
        reduction->start().wait();
        INFO(name_of(algorithm) << " of " << count << " elements, repetition " << repetition);
        CHECK(wrong<TestType>(data, communicator.size()) == 0);
      }
    }
  }
}

}  // namespace
}  // namespace ronda
