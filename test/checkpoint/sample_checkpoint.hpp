#pragma once
#include <filesystem>
#include <vector>

#include <ronda/runtime/checkpoint/checkpoint_folder.hpp>
#include <ronda/runtime/checkpoint/checkpoint_writer.hpp>
#include <ronda/runtime/checkpoint/snapshot.hpp>

namespace ronda::test {

/// Three states, 20 numbers, that are all `value`.
struct SampleStates {
  explicit SampleStates(float value) : numbers(20, value) {}
  std::vector<float> numbers;

  [[nodiscard]] std::vector<State> states() {
    const auto at = [&](std::size_t offset, Shape shape) {
      return Tensor({shape, DType::float32, {}}, numbers.data() + offset);
    };
    return {{"a.weight", at(0, {3, 4}), Scope::replicated},
            {"a.bias", at(12, {3}), Scope::replicated},
            {"a.bias.momentum_buffer", at(15, {3}), Scope::replicated},
            {"residual", at(18, {2}), Scope::per_rank}};
  }
};

inline CheckpointManifest sample_manifest(std::uint64_t step, int ranks = 1) {
  CheckpointManifest manifest;
  manifest.application = "test";
  manifest.step = step;
  manifest.ranks = ranks;
  manifest.options = {{"seed", "1"}};
  manifest.plan = {"one line", "another"};
  return manifest;
}

/// Writes a checkpoint of one rank, by the writer itself. False if it failed.
inline bool write_sample(const std::filesystem::path& directory, std::uint64_t step, std::size_t keep = 10,
                         Storage& storage = file_system()) {
  SampleStates sample(static_cast<float>(step));
  Snapshot snapshot(sample.states());
  snapshot.take();
  CheckpointWriter writer(directory, keep, "token", 0, {}, nullptr, storage);
  writer.write_part(snapshot, step);
  writer.work().step();
  if (writer.part() != CheckpointWriter::Outcome::done) {
    writer.discard(step);
    writer.work().step();
    return false;
  }
  writer.publish(sample_manifest(step));
  writer.work().step();
  return writer.publication() == CheckpointWriter::Outcome::done;
}

}  // namespace ronda::test
