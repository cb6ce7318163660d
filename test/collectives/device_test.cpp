// Tensors on the ranks' devices, through the host's memory and by NCCL's stand-in: devices are threads here.
#include "support/catch.hpp"
#include "support/fake_device.hpp"
#include "support/fake_nccl.hpp"
#include "support/message.hpp"
#include "support/numbers.hpp"
#include "support/ranks.hpp"

#include <ronda/collectives/fusion_buffer.hpp>
#include <ronda/collectives/group/group.hpp>
#include <ronda/core/error.hpp>

#include <string>

namespace ronda::device_test {
namespace {

using test::FakeDevice;
using test::FakeNccl;
using test::FakeStream;
using test::floats_in;
using test::message_of;
using test::require_mentions;

std::shared_ptr<FakeDevice> device_of(const Communicator& communicator) {
  return std::make_shared<FakeDevice>("GPU-" + std::to_string(communicator.rank()));
}

/// A group of all ranks that has a device each.
Communicator all_on(std::shared_ptr<FakeDevice> device, AllreduceAlgorithm how = AllreduceAlgorithm::staged) {
  Communicator communicator = test::world().communicator().split(0, test::world().rank());
  communicator.use_device(std::move(device), how);
  return communicator;
}

Communicator all_by_nccl(std::shared_ptr<FakeDevice> device, const std::shared_ptr<FakeNccl>& library,
                         AllreduceAlgorithm how = AllreduceAlgorithm::automatic) {
  Communicator communicator = test::world().communicator().split(0, test::world().rank());
  communicator.group().use_device(std::move(device), how, library);
  return communicator;
}

std::shared_ptr<FakeNccl> library_over_mpi() {
  return std::make_shared<FakeNccl>(
      [communicator = test::world().communicator()](std::string_view text) { return communicator.gather_texts(text); });
}

std::span<float> values(const Buffer& buffer, std::size_t count) { return test::elements_in<float>(buffer, count); }

TEST_CASE("an allreduce through the host waits for the device, and the device for it") {
  const auto device = device_of(test::world().communicator());
  Communicator communicator = all_on(device);
  const int ranks = communicator.size(), rank = communicator.rank();
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{1000}, std::size_t{2'500'000}}) {
    const Buffer memory = communicator.allocate(count * sizeof(float), Memory::on_device);
    const auto reduction = communicator.plan(AllreduceSpec{.tensors = {floats_in(memory, count)}, .label = "bucket"});
    CHECK(reduction->algorithm() == (ranks > 1 ? "staged" : "auto"));
    CHECK(device->pinned == (count > 0 && ranks > 1 ? 1 : 0));
    FakeStream computing(device->device());
    for (int run = 0; run < 3; ++run) {
      computing.queue([&] { test::fill_numbers(values(memory, count), rank); });  // the gradients come late
      const Event reduced = reduction->start(computing.record());
      std::size_t wrong = 1;
      computing.wait(reduced);
      computing.queue([&] { wrong = test::count_wrong<float>(values(memory, count), ranks); });
      computing.synchronize();
      CHECK(wrong == 0);
    }
  }
  CHECK(device->pinned == 0);
  CHECK(device->high_priority_streams == 3);
}

TEST_CASE("several collectives through the host are in flight together, with numbers of several types") {
  const auto device = device_of(test::world().communicator());
  Communicator communicator = all_on(device);
  const int ranks = communicator.size(), rank = communicator.rank();
  constexpr std::size_t count = 1'500'001, buckets = 4;  // odd: what comes after it on the host has a place of its own
  const Buffer memory = communicator.allocate(buckets * count * sizeof(float) + 64, Memory::on_device);
  auto* control = reinterpret_cast<double*>(memory.data() + buckets * count * sizeof(float));
  std::vector<std::unique_ptr<Collective>> reductions;
  for (std::size_t bucket = 0; bucket < buckets; ++bucket) {
    AllreduceSpec spec{.tensors = {floats_in(memory, count, bucket * count)},
                       .label = "bucket " + std::to_string(bucket)};
    if (bucket + 1 == buckets) spec.exact.push_back(Tensor({Shape{2}, DType::float64, {}}, control, memory.device()));
    reductions.push_back(communicator.plan(spec));
  }
  for (int run = 0; run < 2; ++run) {
    test::fill_numbers(values(memory, buckets * count), rank);
    control[0] = 1e15 + rank;
    control[1] = 1;
    std::vector<Event> done;
    for (const auto& reduction : reductions) done.push_back(reduction->start());
    for (const Event& event : done) event.wait();
    CHECK(test::count_wrong<float>(values(memory, buckets * count), ranks) == 0);
    CHECK(control[0] == 1e15 * ranks + ranks * (ranks - 1) / 2);
    CHECK(control[1] == ranks);
  }
}

TEST_CASE("broadcast, allgather and reduce-scatter of a device's memory, through the host and by NCCL") {
  const bool by_nccl = GENERATE(false, true);
  const auto device = device_of(test::world().communicator());
  Communicator communicator = by_nccl ? all_by_nccl(device, library_over_mpi()) : all_on(device);
  const int ranks = communicator.size(), rank = communicator.rank();
  const bool even = GENERATE(true, false);
  std::vector<std::size_t> counts(static_cast<std::size_t>(ranks), 300);
  if (!even) counts[0] = 7;
  std::size_t count = 0, before = 0;
  for (int other = 0; other < ranks; ++other) {
    if (other < rank) before += counts[static_cast<std::size_t>(other)];
    count += counts[static_cast<std::size_t>(other)];
  }
  const Buffer memory = communicator.allocate(count * sizeof(float), Memory::on_device);
  const Tensor all = floats_in(memory, count);
  const auto run = [&](const CollectiveSpec& spec) {
    test::fill_numbers(values(memory, count), rank);
    const auto collective = communicator.plan(spec);
    if (ranks > 1) CHECK(collective->algorithm() == (by_nccl ? "nccl" : "staged"));
    collective->start().wait();
  };
  run(BroadcastSpec{all, ranks - 1});
  for (std::size_t i = 0; i < count; ++i) REQUIRE(values(memory, count)[i] == test::number_of<float>(i, ranks - 1));
  run(AllgatherSpec{all, counts});
  for (std::size_t i = 0, owner = 0, end = counts[0]; i < count; ++i) {
    while (i >= end) end += counts[++owner];
    REQUIRE(values(memory, count)[i] == test::number_of<float>(i, static_cast<int>(owner)));
  }
  run(ReduceScatterSpec{all, ReduceOp::sum, counts});
  const auto mine = values(memory, count).subspan(before, counts[static_cast<std::size_t>(rank)]);
  CHECK(test::count_wrong<float>(mine, ranks, before) == 0);
}

TEST_CASE("by NCCL where every rank has a GPU of its own") {
  const auto library = library_over_mpi();
  {
    Communicator communicator = all_by_nccl(device_of(test::world().communicator()), library);
    CHECK(communicator.take_notes().empty());
    REQUIRE(communicator.devices().size() == static_cast<std::size_t>(communicator.size()));
    CHECK(communicator.devices()[0].starts_with("rank 0 on "));
    CHECK(communicator.devices()[0].ends_with(communicator.size() > 1 ? ": cuda:0, fake, by nccl" : ": cuda:0, fake"));
    const Buffer memory = communicator.allocate(4000, Memory::on_device);
    const auto reduction = communicator.plan(AllreduceSpec{.tensors = {floats_in(memory, 1000)}});
    for (int run = 0; run < 2; ++run) {
      test::fill_numbers(values(memory, 1000), communicator.rank());
      reduction->start().wait();
      CHECK(test::count_wrong<float>(values(memory, 1000), communicator.size()) == 0);
    }
    if (communicator.size() > 1) {
      CHECK(reduction->algorithm() == "nccl");
      CHECK(library->count("open window") == 1);
      CHECK(
          communicator.plan(AllreduceSpec{.tensors = {floats_in(memory, 10)}, .algorithm = AllreduceAlgorithm::staged})
              ->algorithm() == "staged");
      CHECK_THROWS_AS(
          communicator.plan(AllreduceSpec{.tensors = {floats_in(memory, 10)}, .compression = Compression::bf16}),
          InputError);
    }
  }
  CHECK(library->count("abort") == (test::world().size() > 1 ? 1 : 0));
  CHECK(library->memory_in_use() == 0);
}

TEST_CASE("where NCCL cannot be, all ranks go through the host, and say why") {
  if (test::world().size() == 1) return;
  const auto refused = [](const std::shared_ptr<FakeDevice>& device, const std::shared_ptr<FakeNccl>& library,
                          const std::string& why) {
    Communicator communicator = all_by_nccl(device, library);
    const auto notes = communicator.take_notes();
    REQUIRE(notes.size() == 1);
    CHECK(notes[0].text().find(why) != std::string::npos);
    const Buffer memory = communicator.allocate(40, Memory::on_device);
    CHECK(communicator.plan(AllreduceSpec{.tensors = {floats_in(memory, 10)}})->algorithm() == "staged");
    CHECK_THROWS_AS(all_by_nccl(device, library, AllreduceAlgorithm::nccl), InputError);
    if (library != nullptr) CHECK(library->count("init") == 0);
  };
  const int rank = test::world().rank();
  const auto own = device_of(test::world().communicator());
  refused(std::make_shared<FakeDevice>("GPU-7"), library_over_mpi(), "share a GPU, which NCCL refuses; gradients go");
  refused(own, rank == 0 ? library_over_mpi() : nullptr, "rank 1 on");
  const auto older = library_over_mpi();
  if (rank == 1) older->version_number = "2.19.3";
  refused(own, older, "has NCCL 2.19.3, rank 0 on");
}

TEST_CASE("ranks that NCCL does not connect stop together") {
  if (test::world().size() == 1) return;
  const auto library = library_over_mpi();
  if (test::world().rank() == 1) library->start = {nccl::Status::failed, "no network"};
  std::string error;
  try {
    all_by_nccl(device_of(test::world().communicator()), library);
  } catch (const CommunicationError& failure) {
    error = failure.what();
  }
  CHECK(error.starts_with("rank 1 on "));
  CHECK(error.find("NCCL's start failed: no network") != std::string::npos);
}

TEST_CASE("memory that cannot be pinned is used as it is, with a note") {
  const auto device = device_of(test::world().communicator());
  device->refuses_pins = true;
  Communicator communicator = all_on(device);
  const Buffer memory = communicator.allocate(4000, Memory::on_device);
  const auto reduction = communicator.plan(AllreduceSpec{.tensors = {floats_in(memory, 1000)}});
  CHECK(communicator.take_notes().size() == (communicator.size() > 1 ? 1 : 0));
  test::fill_numbers(values(memory, 1000), communicator.rank());
  reduction->start().wait();
  CHECK(test::count_wrong<float>(values(memory, 1000), communicator.size()) == 0);
}

TEST_CASE("what is for GPUs is refused on CPUs, and the other way round") {
  Communicator communicator = test::world().communicator();
  std::vector<float> host(10);
  for (const AllreduceAlgorithm algorithm : {AllreduceAlgorithm::nccl, AllreduceAlgorithm::staged})
    CHECK_THROWS_AS(communicator.plan(AllreduceSpec{.tensors = {Tensor(std::span(host))}, .algorithm = algorithm}),
                    InputError);
  const auto device = device_of(communicator);
  const Buffer memory = device->allocate(40);
  CHECK_THROWS_AS(communicator.plan(AllreduceSpec{.tensors = {floats_in(memory, 10)}}),
                  LogicError);  // of no device yet
  Communicator other = all_on(device);
  CHECK_THROWS_AS(other.plan(AllreduceSpec{.tensors = {floats_in(memory, 10)}, .algorithm = AllreduceAlgorithm::ring}),
                  InputError);
  CHECK_THROWS_AS(other.plan(AllreduceSpec{.tensors = {floats_in(memory, 10), Tensor(std::span(host))}}), LogicError);
  CHECK_THROWS_AS(other.plan(ReduceSpec{.tensor = floats_in(memory, 10)}), LogicError);
  CHECK_THROWS_AS(all_on(device, AllreduceAlgorithm::mpi), InputError);
}

TEST_CASE("a mistake of one rank about where its tensor is reaches all of them") {
  Communicator plain = test::world().communicator();
  if (plain.size() == 1) return;
  const auto device = device_of(plain);
  Communicator communicator = all_on(device);
  const bool odd = communicator.rank() == 1;
  std::vector<float> host(10);
  const Buffer memory = device->allocate(40);
  const auto here_or_there = [&](bool on_host) { return on_host ? Tensor(std::span(host)) : floats_in(memory, 10); };
  for (const bool most_on_host : {false, true}) {
    const Tensor tensor = here_or_there(odd != most_on_host);
    const std::vector<CollectiveSpec> specs{AllreduceSpec{.tensors = {tensor}, .label = "a sum"},
                                            BroadcastSpec{tensor, 0, "a copy"}};
    for (const CollectiveSpec& spec : specs) {
      const std::string message = message_of<LogicError>([&] { communicator.plan(spec); });
      require_mentions(message, {"the ranks disagree", "rank 0", "rank 1", "on a device"});
    }
  }
  const Tensor of_no_device = here_or_there(!odd);  // on the others, where no device was named
  const std::string message = message_of<LogicError>(
      [&] { plain.split(0, plain.rank()).plan(AllreduceSpec{.tensors = {of_no_device}, .label = "a sum"}); });
  require_mentions(message, {"rank 1 on ", "use_device"});
}

}  // namespace
}  // namespace ronda::device_test
