// Random sequences of collectives, compared with MPI's own: types, operations, counts, roots, algorithms, memory and
// splits, in two worlds on two threads.
//   fuzz_program [SEQUENCES [SEED]]    status 1 after a sequence that differs; prints its seed and the fewest of its
//                                      calls that still differ
#include <ronda/collectives/mpi_world.hpp>
#include <ronda/core/error.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

namespace {

using namespace ronda;

enum class Call { allreduce, reduce, broadcast, reduce_scatter, allgather, gather, scatter, alltoall, messages, split };
constexpr std::array call_names{"allreduce", "reduce",  "broadcast", "reduce_scatter", "allgather",
                                "gather",    "scatter", "alltoall",  "messages",       "split"};
constexpr std::array dtypes{DType::float32, DType::float64, DType::int8, DType::uint8, DType::int32, DType::int64};
constexpr std::array operations{ReduceOp::sum, ReduceOp::mean, ReduceOp::minimum, ReduceOp::maximum, ReduceOp::product};
constexpr std::array algorithms{AllreduceAlgorithm::automatic, AllreduceAlgorithm::automatic, AllreduceAlgorithm::ring,
                                AllreduceAlgorithm::halving,   AllreduceAlgorithm::doubling,  AllreduceAlgorithm::mpi};
constexpr std::array<std::size_t, 10> counts{0, 1, 2, 3, 17, 255, 1000, 4099, 20'000, 70'001};

/// The same on all ranks of a world.
struct Step {
  Call call = Call::allreduce;
  std::size_t group = 0;  ///< index among the groups made so far
  DType dtype = DType::float32;
  ReduceOp op = ReduceOp::sum;
  AllreduceAlgorithm algorithm = AllreduceAlgorithm::automatic;
  std::size_t count = 0;
  int root = 0;         ///< or the number of parts of a split
  bool shared = false;  ///< in memory that the node's ranks share
  bool uneven = false;  ///< ranks have different counts
  int runs = 1;
  std::uint64_t seed = 0;  ///< for the step's numbers

  [[nodiscard]] std::string text() const {
    return std::string(call_names[static_cast<std::size_t>(call)]) + " in group " + std::to_string(group) + ", " +
           std::to_string(count) + " " + std::string(name_of(dtype)) + ", " + std::string(name_of(op)) + " by " +
           std::string(name_of(algorithm)) + ", root " + std::to_string(root) + (shared ? ", shared" : "") +
           (uneven ? ", uneven" : "") + ", " + std::to_string(runs) + " runs";
  }
};

std::vector<Step> random_steps(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::size_t limit) { return static_cast<std::size_t>(random() % limit); };
  std::vector<Step> steps(4 + below(9));
  for (Step& step : steps)
    step = {.call = static_cast<Call>(below(call_names.size())),
            .group = below(1000),
            .dtype = dtypes[below(dtypes.size())],
            .op = operations[below(operations.size())],
            .algorithm = algorithms[below(algorithms.size())],
            .count = counts[below(counts.size())],
            .root = static_cast<int>(below(1000)),
            .shared = below(2) == 0,
            .uneven = below(2) == 0,
            .runs = 1 + static_cast<int>(below(3)),
            .seed = random()};
  return steps;
}

/// The same ranks as a communicator of Ronda and of MPI.
struct Group {
  Communicator ours;
  MPI_Comm theirs;
};

template <class T>
MPI_Datatype mpi_type() {
  if constexpr (std::is_same_v<T, float>) return MPI_FLOAT;
  if constexpr (std::is_same_v<T, double>) return MPI_DOUBLE;
  if constexpr (std::is_same_v<T, std::int8_t>) return MPI_INT8_T;
  if constexpr (std::is_same_v<T, std::uint8_t>) return MPI_UINT8_T;
  if constexpr (std::is_same_v<T, std::int32_t>) return MPI_INT32_T;
  if constexpr (std::is_same_v<T, std::int64_t>) return MPI_INT64_T;
}

MPI_Op mpi_operation(ReduceOp op) {
  switch (op) {
    case ReduceOp::minimum: return MPI_MIN;
    case ReduceOp::maximum: return MPI_MAX;
    case ReduceOp::product: return MPI_PROD;
    default: return MPI_SUM;
  }
}

/// One step, on numbers of one type.
template <class T>
class Compared {
 public:
  Compared(const Step& step, Group& group)
      : step_(step),
        group_(group),
        ranks_(group.ours.size()),
        rank_(group.ours.rank()),
        root_(step.root % ranks_),
        parts_(static_cast<std::size_t>(ranks_), step.count / static_cast<std::size_t>(ranks_)) {
    if (step.uneven)
      for (std::size_t r = 0; r < parts_.size(); ++r) parts_[r] = (step.seed >> (8 * (r % 8))) % (step.count + 1);
    whole_ = std::accumulate(parts_.begin(), parts_.end(), std::size_t{0});
  }

  /// Whether this rank's result equals MPI's.
  bool run() {
    switch (step_.call) {
      case Call::allreduce: return allreduce();
      case Call::reduce: return reduce();
      case Call::broadcast: return broadcast();
      case Call::reduce_scatter: return reduce_scatter();
      case Call::allgather: return allgather();
      case Call::gather: return gather();
      case Call::scatter: return scatter();
      case Call::alltoall: return alltoall();
      case Call::messages: return messages();
      case Call::split: return true;
    }
    return false;
  }

 private:
  /// Small whole numbers, whose sums and products every type holds.
  [[nodiscard]] std::vector<T> numbers(std::size_t count, int salt = 0) const {
    std::vector<T> values(count);
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t mixed =
          (step_.seed + i * 0x9E3779B97F4A7C15 + static_cast<std::uint64_t>(rank_ * 31 + salt)) * 0xBF58476D1CE4E5B9 >>
          40;
      values[i] = static_cast<T>(step_.op == ReduceOp::product ? 1 + mixed % 2 : mixed % 20);
    }
    return values;
  }
  /// The numbers in the memory that the step asks for.
  std::span<T> placed(const std::vector<T>& values) {
    memory_ = group_.ours.allocate(values.size() * sizeof(T), step_.shared ? Memory::node_shared : Memory::per_rank);
    const std::span<T> place(reinterpret_cast<T*>(memory_.data()), values.size());
    std::ranges::copy(values, place.begin());
    return place;
  }
  static Tensor tensor(std::span<T> values) { return Tensor(values); }
  [[nodiscard]] static int to_int(std::size_t count) { return static_cast<int>(count); }
  [[nodiscard]] std::vector<int> int_parts() const { return {parts_.begin(), parts_.end()}; }
  [[nodiscard]] std::vector<int> offsets() const {
    std::vector<int> begins(parts_.size());
    for (std::size_t r = 1; r < parts_.size(); ++r) begins[r] = begins[r - 1] + to_int(parts_[r - 1]);
    return begins;
  }
  [[nodiscard]] std::size_t mine() const { return parts_[static_cast<std::size_t>(rank_)]; }
  [[nodiscard]] std::size_t begin() const {
    return static_cast<std::size_t>(offsets()[static_cast<std::size_t>(rank_)]);
  }
  /// MPI's reduction of `values` on all ranks.
  [[nodiscard]] std::vector<T> reduced(std::vector<T> values) const {
    MPI_Allreduce(MPI_IN_PLACE, values.data(), to_int(values.size()), mpi_type<T>(), mpi_operation(step_.op),
                  group_.theirs);
    if (step_.op == ReduceOp::mean)
      for (T& value : values) value = static_cast<T>(value / static_cast<T>(ranks_));
    return values;
  }

  bool allreduce() {
    const auto values = numbers(step_.count), expected = reduced(values);
    const auto place = placed(values);
    const auto planned = group_.ours.plan(AllreduceSpec{{tensor(place)}, step_.op, step_.algorithm, "fuzz"});
    bool good = true;
    for (int run = 0; run < step_.runs; ++run) {
      std::ranges::copy(values, place.begin());
      planned->start().wait();
      good = good && std::ranges::equal(place, expected);
    }
    std::ranges::copy(values, place.begin());
    group_.ours.allreduce(tensor(place), step_.op);
    return good && std::ranges::equal(place, expected);
  }
  bool reduce() {
    const auto values = numbers(step_.count), expected = reduced(values);
    const auto place = placed(values);
    group_.ours.reduce(tensor(place), root_, step_.op);
    return rank_ != root_ || std::ranges::equal(place, expected);
  }
  bool broadcast() {
    auto expected = numbers(step_.count);
    const auto place = placed(expected);
    MPI_Bcast(expected.data(), to_int(expected.size()), mpi_type<T>(), root_, group_.theirs);
    group_.ours.broadcast(tensor(place), root_);
    return std::ranges::equal(place, expected);
  }
  bool reduce_scatter() {
    const auto values = numbers(whole_), expected = reduced(values);
    const auto place = placed(values);
    std::vector<T> part(mine());
    group_.ours.reduce_scatter(tensor(place), Tensor(std::span(part)), step_.op, parts_);
    return std::ranges::equal(part, std::span(expected).subspan(begin(), mine()));
  }
  bool allgather() {
    auto part = numbers(mine());
    std::vector<T> expected(whole_);
    MPI_Allgatherv(part.data(), to_int(part.size()), mpi_type<T>(), expected.data(), int_parts().data(),
                   offsets().data(), mpi_type<T>(), group_.theirs);
    const auto place = placed(std::vector<T>(whole_));
    group_.ours.allgather(Tensor(std::span(part)), tensor(place), parts_);
    return std::ranges::equal(place, expected);
  }
  bool gather() {
    auto part = numbers(mine());
    std::vector<T> expected(whole_), all(whole_);
    MPI_Gatherv(part.data(), to_int(part.size()), mpi_type<T>(), expected.data(), int_parts().data(), offsets().data(),
                mpi_type<T>(), root_, group_.theirs);
    group_.ours.gather(Tensor(std::span(part)), Tensor(std::span(all)), root_, parts_);
    return rank_ != root_ || all == expected;
  }
  bool scatter() {
    auto all = numbers(whole_);
    std::vector<T> expected(mine()), part(mine());
    MPI_Scatterv(all.data(), int_parts().data(), offsets().data(), mpi_type<T>(), expected.data(), to_int(mine()),
                 mpi_type<T>(), root_, group_.theirs);
    group_.ours.scatter(Tensor(std::span(all)), Tensor(std::span(part)), root_, parts_);
    return part == expected;
  }
  /// Rank r receives as many elements from each rank as its part has.
  bool alltoall() {
    auto outgoing = numbers(whole_);
    const std::vector<std::size_t> incoming_counts(parts_.size(), mine());
    std::vector<T> expected(mine() * parts_.size()), incoming(expected.size());
    std::vector<int> theirs(parts_.size(), to_int(mine())), begins(parts_.size());
    for (std::size_t r = 0; r < parts_.size(); ++r) begins[r] = to_int(r * mine());
    MPI_Alltoallv(outgoing.data(), int_parts().data(), offsets().data(), mpi_type<T>(), expected.data(), theirs.data(),
                  begins.data(), mpi_type<T>(), group_.theirs);
    group_.ours.alltoall(Tensor(std::span(outgoing)), Tensor(std::span(incoming)), parts_, incoming_counts);
    return incoming == expected;
  }
  /// To the next rank, from the one before.
  bool messages() {
    if (ranks_ == 1) return true;
    const int next = (rank_ + 1) % ranks_, before = (rank_ + ranks_ - 1) % ranks_;
    auto sent = numbers(step_.count);
    std::vector<T> expected(step_.count), received(step_.count);
    MPI_Sendrecv(sent.data(), to_int(sent.size()), mpi_type<T>(), next, 0, expected.data(), to_int(expected.size()),
                 mpi_type<T>(), before, 0, group_.theirs, MPI_STATUS_IGNORE);
    const auto receive = group_.ours.plan(ReceiveSpec{Tensor(std::span(received)), before});
    const Event arrived = receive->start();
    group_.ours.send(Tensor(std::span(sent)), next);
    arrived.wait();
    return received == expected;
  }

  const Step& step_;
  Group& group_;
  int ranks_, rank_, root_;
  std::vector<std::size_t> parts_;  ///< by rank
  std::size_t whole_ = 0;
  Buffer memory_;
};

bool compare(const Step& step, Group& group) {
  switch (step.dtype) {
    case DType::float32: return Compared<float>(step, group).run();
    case DType::float64: return Compared<double>(step, group).run();
    case DType::int8: return Compared<std::int8_t>(step, group).run();
    case DType::uint8: return Compared<std::uint8_t>(step, group).run();
    case DType::int32: return Compared<std::int32_t>(step, group).run();
    default: return Compared<std::int64_t>(step, group).run();
  }
}

Group split(const Group& group, const Step& step) {
  const int color = group.ours.rank() % (1 + step.root % 3), key = step.uneven ? -group.ours.rank() : group.ours.rank();
  MPI_Comm part = MPI_COMM_NULL;
  MPI_Comm_split(group.theirs, color, key, &part);
  return {group.ours.split(color, key), part};
}

/// Whether all steps are right, on all ranks.
bool run(const std::vector<Step>& steps, const Group& all) {
  std::vector<Group> groups{all};
  int wrong = 0;
  for (const Step& step : steps) {
    Group& group = groups[step.group % groups.size()];
    if (step.call == Call::split)
      groups.push_back(split(Group(group), step));
    else
      wrong |= compare(step, group) ? 0 : 1;
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, all.theirs);
    if (wrong != 0) break;
  }
  while (groups.size() > 1) {
    MPI_Comm part = groups.back().theirs;
    groups.pop_back();
    MPI_Comm_free(&part);
  }
  return wrong == 0;
}

/// Removes steps while the others still differ.
std::vector<Step> shrunk(std::vector<Step> steps, const Group& all) {
  for (std::size_t i = steps.size(); i-- > 0;) {
    std::vector<Step> fewer = steps;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    if (!run(fewer, all)) steps = std::move(fewer);
  }
  return steps;
}

/// Returns the sequences that differ.
int compare_many(MPI_Comm communicator, int sequences, std::uint64_t seed) {
  World world = World::adopt(communicator, {.progress = Progress::inline_});
  const Group all{world.communicator(), communicator};
  for (int i = 0; i < sequences; ++i, ++seed) {
    const std::vector<Step> steps = random_steps(seed);
    if (run(steps, all)) continue;
    const auto fewest = shrunk(steps, all);
    if (world.rank() == 0) {
      std::printf("the sequence of seed %llu differs from MPI:\n", static_cast<unsigned long long>(seed));
      for (const Step& step : fewest) std::printf("  %s\n", step.text().c_str());
    }
    return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  int level = MPI_THREAD_SINGLE, rank = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (level < MPI_THREAD_MULTIPLE) return std::puts("this MPI has no MPI_THREAD_MULTIPLE"), 77;
  const int sequences = argc > 1 ? std::atoi(argv[1]) : 100;
  std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : std::random_device()();
  MPI_Bcast(&seed, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  if (rank == 0) std::printf("%d sequences from seed %llu on\n", sequences, static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  std::array<MPI_Comm, 2> copies{};
  for (MPI_Comm& copy : copies) MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  const int first = sequences / 2;
  int others_wrong = 0;
  std::thread other(
      [&] { others_wrong = compare_many(copies[1], sequences - first, seed + static_cast<std::uint64_t>(first)); });
  const int wrong = compare_many(copies[0], first, seed);
  other.join();
  for (MPI_Comm& copy : copies) MPI_Comm_free(&copy);
  MPI_Finalize();
  return wrong + others_wrong > 0 ? 1 : 0;
}
