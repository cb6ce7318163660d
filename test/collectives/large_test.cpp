// More elements than an int can count: 2^31 + 3 bytes on each rank. Needs 3.5 GiB a rank, most of it shared memory;
// skipped, with status 77, where there is less.
#include <ronda/collectives/launch.hpp>
#include <ronda/core/error.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace {

using namespace ronda;

constexpr std::size_t count = (std::size_t{1} << 31) + 3;
constexpr int skipped = 77;

/// What the ranks give repeats itself after a prime number of elements, so that places 2^31 or 2^32 apart differ.
constexpr std::size_t period = 251, block = period << 12;

/// What rank `rank` gives.
std::vector<std::uint8_t> pattern(int rank) {
  std::vector<std::uint8_t> values(2 * block);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<std::uint8_t>(i % period + static_cast<std::size_t>(rank));
  return values;
}

std::vector<std::uint8_t> pattern_of_sums(int ranks) {
  std::vector<std::uint8_t> sums(2 * block);
  for (int rank = 0; rank < ranks; ++rank) {
    const auto values = pattern(rank);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = static_cast<std::uint8_t>(sums[i] + values[i]);
  }
  return sums;
}

std::size_t available_memory() {
  std::ifstream file("/proc/meminfo");
  std::string name, unit;
  for (std::size_t kilobytes = 0; file >> name >> kilobytes; std::getline(file, unit))
    if (name == "MemAvailable:") return kilobytes << 10;
  return std::numeric_limits<std::size_t>::max();
}

/// The collectives on one rank's data, and what comes of them.
class Check {
 public:
  Check(Communicator all, std::span<std::uint8_t> data)
      : all_(std::move(all)), data_(data), sums_(pattern_of_sums(all_.size())) {}

  void allreduce(AllreduceAlgorithm algorithm) {
    fill();
    all_.allreduce(Tensor(data_), ReduceOp::sum, algorithm);
    expect("allreduce by " + std::string(name_of(algorithm)), data_, 0, sums_);
  }

  void broadcast() {
    fill();
    const int root = all_.size() - 1;
    all_.broadcast(Tensor(data_), root);
    expect("broadcast", data_, 0, pattern(root));
  }

  void reduce_scatter_and_allgather() {
    std::vector<std::size_t> counts;
    std::size_t mine_begins = 0;
    for (std::size_t rank = 0, ranks = static_cast<std::size_t>(all_.size()); rank < ranks; ++rank) {
      if (static_cast<int>(rank) == all_.rank()) mine_begins = count / ranks * rank;
      counts.push_back(count / ranks + (rank + 1 == ranks ? count % ranks : 0));
    }
    std::vector<std::uint8_t> mine(counts[static_cast<std::size_t>(all_.rank())]);
    fill();
    all_.reduce_scatter(Tensor(data_), Tensor(std::span(mine)), ReduceOp::sum, counts);
    expect("reduce_scatter", mine, mine_begins, sums_);
    all_.allgather(Tensor(std::span(mine)), Tensor(data_), counts);
    expect("allgather", data_, 0, sums_);
  }

  [[nodiscard]] bool failed() const { return failed_; }

 private:
  void fill() {
    const auto values = pattern(all_.rank());
    for (std::size_t at = 0; at < data_.size(); at += block)
      std::memcpy(&data_[at], values.data(), std::min(block, data_.size() - at));
  }

  /// @param first  the place of the first of `found`
  void expect(const std::string& what, std::span<const std::uint8_t> found, std::size_t first,
              std::span<const std::uint8_t> expected) {
    for (std::size_t at = 0; at < found.size(); at += block) {
      const auto here = found.subspan(at, std::min(block, found.size() - at));
      const auto wanted = expected.subspan((first + at) % block, here.size());
      const auto [wrong, right] = std::ranges::mismatch(here, wanted);
      if (wrong == here.end()) continue;
      failed_ = true;
      const std::size_t place = first + at + static_cast<std::size_t>(wrong - here.begin());
      std::printf("FAILED: rank %d: %s: at %zu is %d, expected %d\n", all_.rank(), what.c_str(), place, *wrong, *right);
      return;
    }
  }

  Communicator all_;
  std::span<std::uint8_t> data_;
  std::vector<std::uint8_t> sums_;
  bool failed_ = false;
};

int run(World& world) {
  Communicator all = world.communicator();
  const auto needed = static_cast<std::size_t>(all.size()) * (count + count / 2 + (count >> 2));
  std::uint8_t enough = available_memory() >= needed ? 1 : 0;
  all.allreduce(Tensor(std::span(&enough, 1)), ReduceOp::minimum);
  std::string why = enough != 0 ? "" : "needs " + std::to_string(needed >> 30) + " GiB of memory";
  Buffer memory;
  if (why.empty()) {
    memory = all.allocate(count, Memory::node_shared);
    for (const auto& note : all.take_notes()) why = note.text();
  }
  if (!why.empty()) {
    if (all.rank() == 0) std::printf("skipped: %s\n", why.c_str());
    return skipped;
  }

  Check check(all, {reinterpret_cast<std::uint8_t*>(memory.data()), count});
  check.allreduce(AllreduceAlgorithm::node);
  check.allreduce(AllreduceAlgorithm::ring);
  check.broadcast();
  check.reduce_scatter_and_allgather();
  std::uint8_t failed = check.failed() ? 1 : 0;
  all.allreduce(Tensor(std::span(&failed, 1)), ReduceOp::maximum);
  return failed;
}

}  // namespace

int main(int argc, char** argv) { return launch(argc, argv, run); }
