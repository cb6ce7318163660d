// A planned collective takes no memory from the heap when it runs: operator new and aligned_alloc are counted, on all
// threads; run without a watchdog, whose own may take some.
#include "support/catch.hpp"
#include "support/ranks.hpp"

#include <ronda/collectives/fusion_buffer.hpp>
#include <ronda/collectives/group/group.hpp>
#include <ronda/collectives/host/algorithms/allreduce_row.hpp>
#include <ronda/collectives/tuning/choice.hpp>
#include <ronda/core/device_context.hpp>

#include <atomic>
#include <cstdlib>
#include <cstring>
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
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  if (void* memory = std::aligned_alloc(static_cast<std::size_t>(alignment), bytes)) return memory;
  throw std::bad_alloc();
}
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {  // Buffer's
  allocations.fetch_add(1, std::memory_order_relaxed);
  void* memory = nullptr;
  return ::posix_memalign(&memory, alignment, bytes) == 0 ? memory : nullptr;
}
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace ronda {
namespace {

long allocations_in(const std::function<void()>& work) {
  const long before = allocations.load();
  work();
  return allocations.load() - before;
}

/// Whether these hosts cannot do it: `node` needs one node.
bool refused(const AllreduceRow& row, const Topology& topology) {
  return !refusal_of({.wanted = row.algorithm, .bytes = 1 << 20, .node_shared = true}, topology).empty();
}

TEST_CASE("what is taken is counted") {
  CHECK(allocations_in([] { static_cast<void>(Buffer::host(64)); }) > 0);
  CHECK(allocations_in([] {
          int* volatile taken = new int;  // volatile: a compiler may leave out what nobody sees
          delete taken;
        }) == 1);
}

TEST_CASE("starting and waiting takes nothing from the heap, not even the first time") {
  Communicator communicator = test::world().communicator();
  const Buffer memory = communicator.allocate(1 << 20, Memory::node_shared);
  const std::span data(reinterpret_cast<float*>(memory.data()), std::size_t{1} << 18);
  for (const AllreduceRow* row : allreduce_rows()) {
    const AllreduceAlgorithm algorithm = row->algorithm;
    if (refused(*row, communicator.topology())) continue;
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
  for (const AllreduceRow* row : allreduce_rows())
    for (const Compression compression :
         {Compression::bf16, Compression::fp16, Compression::int8, Compression::int4, Compression::two_bit}) {
      const AllreduceAlgorithm algorithm = row->algorithm;
      if (!row->compresses() || refused(*row, communicator.topology())) continue;
      const auto reduction = communicator.plan(AllreduceSpec{
          .tensors = {Tensor(data)}, .algorithm = algorithm, .label = "test", .compression = compression});
      communicator.barrier();
      INFO(name_of(compression) << " by " << name_of(algorithm));
      CHECK(allocations_in([&] {
              for (int i = 0; i < 5; ++i) reduction->start().wait();
            }) == 0);
    }
}

/// A device that does everything at once, and takes nothing from the heap for it.
class InstantDevice final : public DeviceContext {
 public:
  [[nodiscard]] Device device() const noexcept override { return {DeviceKind::cuda, 0}; }
  [[nodiscard]] std::string name() const override { return "instant"; }
  [[nodiscard]] std::string identity() const override { return std::to_string(test::world().rank()); }
  [[nodiscard]] std::size_t free_bytes() override { return 0; }
  std::unique_ptr<Stream> make_stream(StreamPriority) override { return std::make_unique<CpuStream>(); }
  Buffer allocate(std::size_t bytes) override {
    auto memory = std::make_shared<Buffer>(Buffer::host(bytes));
    std::byte* data = memory->data();
    return {data, bytes, device(), std::move(memory)};
  }
  Buffer allocate_staging(std::size_t bytes) override { return Buffer::host(bytes); }
  std::shared_ptr<const void> pin(std::span<std::byte>) override { return nullptr; }
  void clear(void* memory, std::size_t bytes, Stream&) override { std::memset(memory, 0, bytes); }
  void add(const Tensor&, const float*, const Tensor&, Stream&) override {}
  void copy(const void* from, void* to, std::size_t bytes, Stream&) override { std::memcpy(to, from, bytes); }
};

/// NCCL that does nothing.
class IdleNccl final : public nccl::Library {
 public:
  [[nodiscard]] std::string version() const override { return "0"; }
  nccl::Answer make_unique_id(nccl::UniqueId&) override { return {}; }
  nccl::Answer init(nccl::Comm&, int, const nccl::UniqueId&, int) override { return {}; }
  nccl::Answer state(nccl::Comm) override { return {}; }
  void abort(nccl::Comm) noexcept override {}
  nccl::Answer allocate(void** memory, std::size_t bytes) override {
    *memory = std::malloc(bytes);
    return {};
  }
  void free(void* memory) noexcept override { std::free(memory); }
  nccl::Answer open_window(nccl::Comm, void*, std::size_t, nccl::Window&) override { return {}; }
  void close_window(nccl::Comm, nccl::Window) noexcept override {}
  nccl::Answer group_start() override { return {}; }
  nccl::Answer group_end() override { return {}; }
  nccl::Answer all_reduce(nccl::Comm, std::byte*, std::size_t, DType, ReduceOp, Stream&) override {
    ++queued;
    return {};
  }
  nccl::Answer broadcast(nccl::Comm, std::byte*, std::size_t, DType, int, Stream&) override { return {}; }
  nccl::Answer reduce(nccl::Comm, std::byte*, std::size_t, DType, ReduceOp, int, Stream&) override { return {}; }
  nccl::Answer all_gather(nccl::Comm, std::byte*, std::size_t, DType, int, Stream&) override { return {}; }
  nccl::Answer reduce_scatter(nccl::Comm, std::byte*, std::size_t, DType, ReduceOp, int, Stream&) override {
    return {};
  }
  int queued = 0;
};

TEST_CASE("nor do collectives on a device, by NCCL and through the host") {
  constexpr std::size_t count = 1'500'000;
  for (const AllreduceAlgorithm how : {AllreduceAlgorithm::nccl, AllreduceAlgorithm::staged}) {
    const auto library = std::make_shared<IdleNccl>();
    Communicator communicator = test::world().communicator().split(0, test::world().rank());
    communicator.group().use_device(std::make_shared<InstantDevice>(), how, library);
    const Buffer memory = communicator.allocate(2 * count * sizeof(float), Memory::on_device);
    const TensorDesc half{Shape{count}, DType::float32, {}};
    const Tensor tensor(half, memory.data(), memory.device());
    const Tensor exact(half, memory.data() + half.bytes(), memory.device());
    const auto reduction = communicator.plan(AllreduceSpec{.tensors = {tensor}, .label = "bucket 0", .exact = {exact}});
    communicator.barrier();
    INFO(name_of(how));
    CHECK(allocations_in([&] {
            for (int i = 0; i < 5; ++i) reduction->start().wait();
          }) == 0);
    CHECK(library->queued == (how == AllreduceAlgorithm::nccl && communicator.size() > 1 ? 10 : 0));
  }
}

TEST_CASE("nor does a sparse allreduce, whichever rows there are") {
  Communicator communicator = test::world().communicator();
  constexpr std::int64_t rows = 5000, width = 32;
  const std::size_t length = TouchedRows::length(rows);
  const Buffer values = communicator.allocate(rows * width * sizeof(float), Memory::node_shared);
  const Buffer list = communicator.allocate(length * sizeof(std::int32_t), Memory::node_shared);
  const Tensor table({Shape{rows, width}, DType::float32, {}}, values.data());
  TouchedRows touched(std::span(reinterpret_cast<std::int32_t*>(list.data()), length));
  for (const auto algorithm : {AllreduceAlgorithm::automatic, AllreduceAlgorithm::ring}) {
    const auto sum =
        communicator.plan(SparseAllreduceSpec{.table = table, .touched = &touched, .algorithm = algorithm});
    communicator.barrier();
    CHECK(allocations_in([&] {
            for (std::int32_t step = 1; step < 6; ++step) {
              touched.clear();
              for (std::int32_t row = communicator.rank(); row < rows; row += step * step) touched.add(row);
              sum->start().wait();
            }
          }) == 0);
  }
}

TEST_CASE("a step of the fusion buffer takes nothing from the heap") {
  Communicator communicator = test::world().communicator();
  const Buffer arena = communicator.allocate(1 << 20, Memory::node_shared);
  std::vector<GradientSlot> slots;
  for (std::uint32_t i = 0; i < 16; ++i) slots.push_back({ParameterId{i}, "p", i * std::size_t{65536}, 65536});
  FusionBuffer fusion(communicator, slots, arena, {65536, 200'000, AllreduceAlgorithm::automatic});
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
