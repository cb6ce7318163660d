// A planned collective takes no memory from the heap when it runs: operator new is counted.
#include "support/catch.hpp"
#include "support/ranks.hpp"

#include <ronda/collectives/fusion_buffer.hpp>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <new>
#include <vector>

namespace {
std::atomic<long> allocations{0};
}

void* operator new(std::size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace ronda {
namespace {

long allocations_in(const std::function<void()>& work) {
  const long before = allocations.load();
  work();
  return allocations.load() - before;
}

TEST_CASE("starting and waiting takes nothing from the heap, not even the first time") {
  Communicator communicator = test::world().communicator();
  const Buffer memory = communicator.allocate(1 << 20, Memory::node_shared);
  const std::span data(reinterpret_cast<float*>(memory.data()), std::size_t{1} << 18);
  for (const AllreduceAlgorithm algorithm : {AllreduceAlgorithm::node, AllreduceAlgorithm::ring,
                                             AllreduceAlgorithm::hierarchical, AllreduceAlgorithm::mpi}) {
    if (algorithm == AllreduceAlgorithm::node && communicator.topology().nodes > 1) continue;
    const auto reduction = communicator.plan(AllreduceSpec{{Tensor(data)}, ReduceOp::sum, algorithm, "test"});
    communicator.barrier();
    INFO(name_of(algorithm));
    CHECK(allocations_in([&] {
            for (int i = 0; i < 20; ++i) reduction->start().wait();
          }) == 0);
  }
}

TEST_CASE("nor does compression") {
  Communicator communicator = test::world().communicator();
  const Buffer memory = communicator.allocate(1 << 20, Memory::node_shared);
  const std::span data(reinterpret_cast<float*>(memory.data()), std::size_t{1} << 18);
  for (const AllreduceAlgorithm algorithm : {AllreduceAlgorithm::ring, AllreduceAlgorithm::halving,
                                             AllreduceAlgorithm::doubling, AllreduceAlgorithm::hierarchical})
    for (const Compression compression : {Compression::bf16, Compression::fp16, Compression::int8}) {
      const auto reduction = communicator.plan(AllreduceSpec{
          .tensors = {Tensor(data)}, .algorithm = algorithm, .label = "test", .compression = compression});
      communicator.barrier();
      INFO(name_of(compression) << " by " << name_of(algorithm));
      CHECK(allocations_in([&] {
              for (int i = 0; i < 5; ++i) reduction->start().wait();
            }) == 0);
    }
}

TEST_CASE("a step of the fusion buffer takes nothing from the heap") {
  Communicator communicator = test::world().communicator();
  const Buffer arena = communicator.allocate(1 << 20, Memory::node_shared);
  std::vector<GradientSlot> slots;
  for (std::uint32_t i = 0; i < 16; ++i) slots.push_back({ParameterId{i}, "p", i * std::size_t{65536}, 65536});
  FusionBuffer fusion(communicator, slots, arena.data(), {65536, 200'000, AllreduceAlgorithm::automatic});
  CpuStream stream;
  CHECK(allocations_in([&] {
          for (int step = 0; step < 5; ++step) {
            fusion.begin();
            for (const auto& slot : slots) fusion.mark_ready(slot.id, stream);
            fusion.wait(stream);
          }
        }) == 0);
}

}  // namespace
}  // namespace ronda
