// Counts the heap that a rank takes as it starts, plans, steps and agrees: check_memory.py compares worlds of different
// sizes.
//   memory_program    prints, on rank 0, a line of JSON: the most that any rank had taken at a time, by phase, in bytes
#include <ronda/collectives/communicator.hpp>
#include <ronda/collectives/world.hpp>
#include <ronda/coordinator/coordinator.hpp>
#include <ronda/core/error.hpp>

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

std::atomic<long> live{0}, most{0};

/// Only what is taken by operator new counts: not what MPI takes for itself.
void* take(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  const long now =
      live.fetch_add(static_cast<long>(malloc_usable_size(memory))) + static_cast<long>(malloc_usable_size(memory));
  long before = most.load();
  while (now > before && !most.compare_exchange_weak(before, now)) {
  }
  return memory;
}

void give_back(void* memory) noexcept {
  live.fetch_sub(static_cast<long>(malloc_usable_size(memory)));
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t bytes) { return take(std::malloc(bytes == 0 ? 1 : bytes)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  const auto step = static_cast<std::size_t>(alignment);
  return take(std::aligned_alloc(step, (bytes + step - 1) / step * step));
}
void operator delete(void* memory, std::align_val_t) noexcept { give_back(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { give_back(memory); }
void operator delete(void* memory) noexcept { give_back(memory); }
void operator delete(void* memory, std::size_t) noexcept { give_back(memory); }

namespace {

using namespace ronda;

constexpr std::size_t count = 4096;

/// The same number of elements of every rank, however many there are: its own memory is not what is counted.
class Phases {
 public:
  explicit Phases(Communicator communicator) : communicator_(std::move(communicator)) {}

  void run(const std::string& name, const std::function<void()>& work) {
    communicator_.barrier();
    const long before = live.load();
    most.store(before);
    work();
    add(name, most.load() - before);
  }
  void add(const std::string& name, long bytes) {
    double mine = static_cast<double>(bytes);
    communicator_.allreduce(Tensor(std::span(&mine, 1)), ReduceOp::maximum);
    text_ += (text_.empty() ? "" : ", ") + std::string("\"") + name + "\": " + std::to_string(static_cast<long>(mine));
  }
  void print() const {
    if (communicator_.rank() == 0) std::printf("{\"ranks\": %d, %s}\n", communicator_.size(), text_.c_str());
  }

 private:
  Communicator communicator_;
  std::string text_;
};

void run(Communicator all, long start) {
  Phases phases(all);
  phases.add("start", start);
  std::vector<float> data(count), more(count);
  const Tensor tensor{std::span(data)}, other{std::span(more)};
  const auto ranks = static_cast<std::size_t>(all.size());
  std::vector<std::unique_ptr<Collective>> planned;
  const auto plan = [&](const CollectiveSpec& spec) { planned.push_back(all.plan(spec)); };
  for (const auto algorithm : {AllreduceAlgorithm::ring, AllreduceAlgorithm::doubling, AllreduceAlgorithm::mpi})
    phases.run("planning " + std::string(name_of(algorithm)), [&] {
      plan(AllreduceSpec{{tensor}, ReduceOp::sum, algorithm, "sum"});
    });
  phases.run("planning sixteen tensors", [&] {
    std::vector<Tensor> parts;
    for (std::size_t i = 0; i < 16; ++i) parts.emplace_back(std::span(data).subspan(i * 256, 256));
    plan(AllreduceSpec{parts, ReduceOp::sum, AllreduceAlgorithm::ring, "sums"});
  });
  phases.run("planning allgather", [&] {
    plan(AllgatherSpec{Tensor(std::span(data).first(count / ranks * ranks)), {}});
  });
  phases.run("planning alltoall", [&] {
    const std::size_t whole = count / ranks * ranks;
    plan(AlltoallSpec{Tensor(std::span(data).first(whole)), Tensor(std::span(more).first(whole)), {}, {}});
  });
  phases.run("steps", [&] {
    for (const auto& one : planned) one->start().wait();
  });
  phases.run("splitting", [&] { static_cast<void>(all.split(all.rank() % 2, 0)); });
  const long before = live.load();
  most.store(before);
  {
    Coordinator coordinator(all);  // while it is open, no other communication
    for (int round = 0; round < 2; ++round)
      for (const char* name : {"a", "b"}) coordinator.allreduce(name, tensor).wait();
    coordinator.close();
  }
  phases.add("a coordinator", most.load() - before);
  phases.run("a failure", [&] {
    try {
      agree(all, [&] {
        if (all.rank() == 1) throw InputError("one rank's");
      });
    } catch (const InputError&) {
    }
  });
  phases.print();
}

}  // namespace

int main(int argc, char** argv) {
  const long before = live.load();
  most.store(before);
  World world(argc, argv, {.any_thread = true});
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));  // by then the watchdog has found the others' records
  const long start = most.load() - before;
  run(world.communicator(), start);
}
