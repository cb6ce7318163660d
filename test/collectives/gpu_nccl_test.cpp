// NCCL itself, and the way through the host, on a GPU. Two ranks on one GPU, which NCCL takes where each calls its host
// by another name, are as good as two GPUs for this, and very slow.
#include "support/catch.hpp"
#include "support/numbers.hpp"
#include "support/ranks.hpp"

#include <ronda/collectives/group/group.hpp>
#include <ronda/core/device_context.hpp>

#include <string>

namespace ronda {
namespace {

std::shared_ptr<DeviceContext> gpu() {
  const auto gpus = static_cast<int>(find_gpus().gpus.size());
  return make_cuda_context(test::world().communicator().topology().rank_on_node % gpus);
}

/// What is on the host goes to the device, or back.
void copy(DeviceContext& device, const void* from, void* to, std::size_t bytes) {
  const auto stream = device.make_stream(StreamPriority::usual);
  device.copy(from, to, bytes, *stream);
  stream->synchronize();
}

/// A window is for GPUs that reach each other's memory, which those of pretended hosts do not.
void expect_registered(const std::string& note) {
  if (note.find("no symmetric window") != std::string::npos)
    WARN(note);
  else if (!note.empty())
    FAIL_CHECK(note);
}

void try_all(AllreduceAlgorithm how) {
  const auto device = gpu();
  Communicator communicator = test::world().communicator().split(0, test::world().rank());
  communicator.use_device(device, how);
  const int ranks = communicator.size(), rank = communicator.rank();
  constexpr std::size_t count = 600'000;
  const Buffer memory = communicator.allocate(count * sizeof(float), Memory::on_device);
  for (const Message& note : communicator.take_notes()) expect_registered(note.text());
  const Tensor all({Shape{static_cast<std::int64_t>(count)}, DType::float32, {}}, memory.data(), memory.device());
  const std::size_t share = count / static_cast<std::size_t>(ranks), begin = share * static_cast<std::size_t>(rank);
  std::vector<float> host(count);
  const auto run = [&](const CollectiveSpec& spec) {
    const auto collective = communicator.plan(spec);
    if (ranks > 1) CHECK(collective->algorithm() == name_of(how));
    for (int again = 0; again < 2; ++again) {
      test::fill_numbers(std::span(host), rank);
      copy(*device, host.data(), memory.data(), count * sizeof(float));
      collective->start().wait();
    }
    copy(*device, memory.data(), host.data(), count * sizeof(float));
  };
  run(AllreduceSpec{.tensors = {all}, .label = "test"});
  CHECK(test::count_wrong<float>(host, ranks) == 0);
  run(BroadcastSpec{all, ranks - 1});
  for (std::size_t i = 0; i < count; i += 1001) REQUIRE(host[i] == test::number_of<float>(i, ranks - 1));
  run(AllgatherSpec{all});
  for (std::size_t i = 0; i < count; i += 1001)
    REQUIRE(host[i] == test::number_of<float>(i, static_cast<int>(i / share)));
  run(ReduceScatterSpec{all});
  CHECK(test::count_wrong<float>(std::span<const float>(host).subspan(begin, share), ranks, begin) == 0);
  communicator.barrier();  // a rank that ends its communicator takes what a slower one may still read
}

TEST_CASE("collectives on a GPU's memory by NCCL") {
  test::pretend_hosts();
  try_all(AllreduceAlgorithm::nccl);
}

TEST_CASE("collectives on a GPU's memory through the host") { try_all(AllreduceAlgorithm::staged); }

TEST_CASE("a rank alone connects, has memory, and queues what NCCL then has nothing to do for") {
  const auto library = nccl::built_in_library();
  REQUIRE(library != nullptr);
  auto lanes = std::make_shared<DeviceLanes>(gpu());
  const auto clique = std::make_shared<nccl::Clique>(
      library, lanes, nccl::Clique::Place{.rank = 0, .names = {"this rank"}, .gather = [](std::string_view text) {
                                            return std::vector{std::string(text)};
                                          }});
  Message note;
  const Buffer memory = clique->allocate(4096, note);
  expect_registered(note.text());
  std::vector<float> host(1024, 3);
  copy(*lanes->context, host.data(), memory.data(), 4096);
  clique->queue([&](nccl::Library& nccl, nccl::Comm comm, const auto& check) {
    check(nccl.all_reduce(comm, memory.data(), host.size(), DType::float32, ReduceOp::sum, clique->stream()));
  });
  lanes->collectives->record().wait();
  host.assign(1024, 0);
  copy(*lanes->context, memory.data(), host.data(), 4096);
  CHECK(host == std::vector<float>(1024, 3));
}

}  // namespace
}  // namespace ronda
