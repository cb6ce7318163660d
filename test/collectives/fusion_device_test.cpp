// Gradients in devices' memory: devices are threads here, NCCL a stand-in that works in the order of their streams.
#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/numbers.hpp"
#include "support/ranks.hpp"

#include <ronda/collectives/fusion_buffer.hpp>
#include <ronda/core/error.hpp>

namespace ronda::fusion_device_test {
namespace {

using test::Devices;
using test::FakeStream;

constexpr std::size_t floats_of_a_slot = 640;

/// Three gradients in two buckets.
struct Gradients {
  explicit Gradients(const Devices& devices)
      : communicator(devices.communicator),
        arena(communicator.allocate(3 * floats_of_a_slot * sizeof(float), Memory::on_device)),
        fusion(communicator, slots(), arena, {.first_bucket_bytes = 64, .bucket_bytes = 8192}),
        computing(devices.device->device()) {}

  static std::vector<GradientSlot> slots() {
    std::vector<GradientSlot> all;
    constexpr std::size_t bytes = floats_of_a_slot * sizeof(float);
    for (std::uint32_t i = 0; i < 3; ++i) all.push_back({ParameterId{i}, "w" + std::to_string(i), i * bytes, bytes});
    return all;
  }
  /// What a step gives the device; the gradients come when it gets there.
  void backward() {
    computing.queue([this] { fusion.control() = {.loss = 1e15 + communicator.rank(), .weight = 1, .flags = {}}; });
    for (std::uint32_t i = 0; i < 3; ++i) {
      computing.queue([this, i] {
        test::fill_numbers(values().subspan(i * floats_of_a_slot, floats_of_a_slot), communicator.rank());
      });
      fusion.mark_ready(ParameterId{i}, computing);
    }
  }
  std::span<float> values() { return test::elements_in<float>(arena, 3 * floats_of_a_slot); }
  void check_sums() {
    const int ranks = communicator.size();
    for (std::size_t i = 0; i < 3; ++i)
      CHECK(test::count_wrong<float>(values().subspan(i * floats_of_a_slot, floats_of_a_slot), ranks) == 0);
    CHECK(fusion.control().loss == 1e15 * ranks + ranks * (ranks - 1) / 2);  // beyond what float32 holds
    CHECK(fusion.control().weight == ranks);
  }

  Communicator communicator;
  Buffer arena;
  FusionBuffer fusion;
  FakeStream computing;  ///< last: it works on the others
};

TEST_CASE("buckets of gradients on devices are reduced, with the control block") {
  for (const auto way : {AllreduceAlgorithm::staged, AllreduceAlgorithm::nccl}) {
    const Devices devices(test::world().communicator(), way);
    Gradients gradients(devices);
    CHECK(gradients.fusion.buckets().size() == 2);
    const bool alone = devices.communicator.size() == 1;
    CHECK(gradients.fusion.moves_alone() == (alone || way == AllreduceAlgorithm::nccl));
    if (!alone) CHECK(gradients.fusion.buckets()[1].algorithm == name_of(way));
    for (int step = 0; step < 3; ++step) {
      gradients.fusion.begin();
      gradients.backward();
      gradients.fusion.wait(gradients.computing);
      gradients.computing.synchronize();
      gradients.check_sums();
    }
  }
}

TEST_CASE("a bucket is handed over when its last gradient is, the device waits for it, and the host for nothing") {
  const Devices devices(test::world().communicator(), AllreduceAlgorithm::nccl);
  if (devices.communicator.size() == 1) return;
  Gradients gradients(devices);
  gradients.computing.hang(true);
  gradients.fusion.begin();
  const int before = devices.nccl->count("all reduce");
  gradients.fusion.mark_ready(ParameterId{1}, gradients.computing);
  CHECK(devices.nccl->count("all reduce") == before);  // the first bucket is not full
  gradients.fusion.mark_ready(ParameterId{0}, gradients.computing);
  CHECK(devices.nccl->count("all reduce") == before + 1);
  gradients.fusion.mark_ready(ParameterId{2}, gradients.computing);
  CHECK(devices.nccl->count("all reduce") == before + 3);  // the control block as well
  gradients.fusion.wait(gradients.computing);
  CHECK(gradients.computing.host_waits() == 0);
  gradients.computing.hang(false);
  gradients.computing.synchronize();
}

TEST_CASE("a recorded step reduces as often as it is replayed") {
  const Devices devices(test::world().communicator(), AllreduceAlgorithm::nccl);
  Gradients gradients(devices);
  const auto step = devices.communicator.watched(devices.device->record(gradients.computing,
                                                                        [&] {
                                                                          gradients.fusion.begin();
                                                                          gradients.backward();
                                                                          gradients.fusion.wait(gradients.computing);
                                                                        }),
                                                 "a step");
  for (int replay = 0; replay < 5; ++replay) {
    step->replay(gradients.computing);
    gradients.computing.synchronize();
    devices.communicator.require_devices();
    gradients.check_sums();
  }
}

}  // namespace
}  // namespace ronda::fusion_device_test
