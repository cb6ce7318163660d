// Each measurement is short and taken many times, in turns with the other contenders. If buffers are rewritten, each
// call is timed by itself, and the median counts. Otherwise the best measurement counts, because a disturbance can only
// slow a call down; medians are kept too.
#include "allreduce_bench/bench.hpp"

#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include <ronda/core/error.hpp>

#include "allreduce_bench/exactness.hpp"
#include "allreduce_bench/plain_mpi.hpp"
#include "tool.hpp"

namespace ronda::apps {
namespace {

constexpr int least_rounds = 5, most_rounds = 100;
constexpr double enough_microseconds = 5e5;
/// What a measurement of several calls takes: beside it, that the ranks do not leave a barrier together is little, and
/// so is what the one before it has left in the caches.
constexpr double measurement_microseconds = 5e4;
constexpr std::size_t measurement_bytes = std::size_t{160} << 20;

/// @param microseconds  what one took
int iterations(const BenchOptions& options, std::size_t bytes, double microseconds) {
  if (options.iterations > 0) return options.iterations;
  const auto by_size = std::clamp<std::size_t>(measurement_bytes / std::max<std::size_t>(bytes, 1), 1, 200);
  const double by_time = std::clamp(measurement_microseconds / microseconds, 1.0, 1e6);
  return static_cast<int>(std::min(static_cast<double>(by_size), by_time));
}

/// The slowest rank's time for one of `count` calls, in microseconds.
double time(const Communicator& communicator, int count, const std::function<void()>& call) {
  Communicator all = communicator;
  all.barrier();
  const double start = MPI_Wtime();
  for (int i = 0; i < count; ++i) call();
  double mine = (MPI_Wtime() - start) / count * 1e6;
  std::vector<double> times(static_cast<std::size_t>(all.size()));
  all.allgather(Tensor(std::span(&mine, 1)), Tensor(std::span(times)));
  return *std::max_element(times.begin(), times.end());
}

/// The slowest rank's time of each call.
std::vector<double> slowest(Communicator all, std::vector<double> mine) {
  all.allreduce(Tensor(std::span(mine)), ReduceOp::maximum);
  return mine;
}

/// One of this host's for each rank on it, in turns; null where nobody asked for one.
std::shared_ptr<DeviceContext> use_gpu(Communicator& communicator, const BenchOptions& options) {
  if (!on_gpu(options)) return nullptr;
  std::shared_ptr<DeviceContext> gpu;
  agree(communicator, [&] {
    const auto gpus = static_cast<int>(find_gpus().gpus.size());
    gpu = make_cuda_context(gpus > 0 ? communicator.topology().rank_on_node % gpus : 0);
  });
  communicator.use_device(
      gpu, options.algorithm == "all" ? AllreduceAlgorithm::automatic : parse_allreduce(options.algorithm));
  return gpu;
}

/// Collective.
bool is_shared(Communicator& communicator, const Buffer& memory) {
  const Shape bytes{static_cast<std::int64_t>(memory.bytes())};
  return !communicator.copies_on_node(Tensor({bytes, DType::uint8, {}}, memory.data())).empty();
}

}  // namespace

Bench::Bench(World& world, const BenchOptions& options)
    : communicator_(world.communicator()),
      options_(options),
      dtype_(element_type(options)),
      op_(parse_reduce_op(options.op)),
      gpu_(use_gpu(communicator_, options)),
      memory_(communicator_.allocate(options.max_bytes, gpu_ ? Memory::on_device : Memory::node_shared)),
      shares_memory_(!gpu_ && is_shared(communicator_, memory_)),
      plain_(gpu_ || compares_with_mpi(options) ? Buffer::host(options.max_bytes) : Buffer()) {}

std::vector<Result> Bench::measure(std::size_t bytes, const std::vector<Way>& ways) {
  std::vector<Contender> contenders;
  for (const Way& way : ways) contenders.push_back(ours(bytes / size_of(dtype_), way));
  std::optional<Contender> mpi;
  if (compares_with_mpi(options_)) mpi = plain_mpi(bytes);

  std::vector<Contender*> turns;
  if (mpi) turns.push_back(&*mpi);
  for (Contender& contender : contenders) turns.push_back(&contender);
  take_turns(turns);

  std::vector<Result> results;
  for (Contender& contender : contenders) {
    Result& result = results.emplace_back(std::move(contender.result));
    result.microseconds = summary(contender.times);
    result.median_microseconds = median(contender.times);
    if (mpi) result.mpi_microseconds = summary(mpi->times);
  }
  return results;
}

Bench::Contender Bench::ours(std::size_t count, const Way& way) {
  const TensorDesc desc{Shape{static_cast<std::int64_t>(count)}, dtype_, {}};
  const Tensor data(desc, (gpu_ ? plain_ : memory_).data());  // on the host
  const AllreduceSpec spec{.tensors = {Tensor(desc, memory_.data(), memory_.device())},
                           .op = op_,
                           .algorithm = way.algorithm,
                           .label = "bench",
                           .compression = way.compression};
  Contender one;
  auto plan = communicator_.plan(spec);
  one.result.bytes = desc.bytes();
  one.result.count = count;
  one.result.asked = way;
  one.result.algorithm = plan->algorithm();
  one.result.compression = name_of(plan->compression());
  if (const auto predicted = plan->times().predicted) one.result.model_microseconds = *predicted * 1e6;
  one.result.wrong = count_wrong(communicator_, data, op_, plan->compression(), plan->algorithm(), [&] {
    copy(data.data(), memory_.data(), desc.bytes());
    plan->start().wait();
    copy(memory_.data(), data.data(), desc.bytes());
  });
  copy(data.data(), memory_.data(), desc.bytes());
  one.plan = communicator_.plan(spec);  // without what rounding has lost, which no number of sums is to make infinite
  one.allreduce = [planned = one.plan.get()] { planned->start().wait(); };
  one.memory = &memory_;
  one.bytes = desc.bytes();
  warm_up(one, desc.bytes());
  return one;
}

/// With private memory, as a program without Ronda has it.
Bench::Contender Bench::plain_mpi(std::size_t bytes) {
  Contender one;
  one.allreduce = [this, count = bytes / size_of(dtype_)] { mpi_allreduce(plain_.data(), count, dtype_, op_); };
  one.memory = &plain_;
  one.bytes = bytes;
  warm_up(one, bytes);
  return one;
}

void Bench::warm_up(Contender& contender, std::size_t bytes) {
  for (int i = 0; i < options_.warmup; ++i) contender.allreduce();
  contender.repetitions = iterations(options_, bytes, time(communicator_, 1, contender.allreduce));
}

void Bench::take_turns(const std::vector<Contender*>& contenders) {
  double spent = 0;  // in the mean; the same on all ranks
  const std::size_t last = contenders.size() - 1;
  for (int round = 0; !enough(round, spent); ++round) {
    // To and fro, so that each follows each of its neighbours: what lies in the caches is what the one before left.
    for (std::size_t i = 0; i <= last; ++i)
      spent += take_turn(*contenders[round % 2 == 0 ? i : last - i]) / static_cast<double>(contenders.size());
  }
}

/// @param spent  microseconds
bool Bench::enough(int rounds, double spent) const {
  if (options_.rounds > 0) return rounds >= options_.rounds;
  return rounds >= least_rounds && (rounds >= most_rounds || spent >= enough_microseconds);
}

/// What all of it took.
double Bench::take_turn(Contender& contender) {
  if (!options_.warm) {
    const auto times = time_rewritten(contender, contender.repetitions);
    contender.times.insert(contender.times.end(), times.begin(), times.end());
    return std::accumulate(times.begin(), times.end(), 0.0);
  }
  contender.times.push_back(time(communicator_, contender.repetitions, contender.allreduce));
  return contender.repetitions * contender.times.back();
}

/// Microseconds of each call on the slowest rank.
std::vector<double> Bench::time_rewritten(Contender& contender, int count) {
  std::vector<double> times;
  for (int i = 0; i < count; ++i) {
    rewrite(contender);
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    contender.allreduce();
    times.push_back((MPI_Wtime() - start) * 1e6);
  }
  return slowest(communicator_, std::move(times));
}

/// Writes zeros, because repeated sums of zeros stay finite; each byte is written by this rank's core.
void Bench::rewrite(Contender& contender) {
  if (contender.memory->device() != Device{}) return copy(plain_.data(), contender.memory->data(), contender.bytes);
  auto* const bytes = reinterpret_cast<volatile unsigned char*>(contender.memory->data());
  auto* const words = reinterpret_cast<volatile std::uint64_t*>(contender.memory->data());
  for (std::size_t i = 0; i < contender.bytes / sizeof(std::uint64_t); ++i) words[i] = 0;
  for (std::size_t i = contender.bytes / sizeof(std::uint64_t) * sizeof(std::uint64_t); i < contender.bytes; ++i)
    bytes[i] = 0;
}

double Bench::summary(const std::vector<double>& times) const {
  return options_.warm ? std::ranges::min(times) : median(times);
}

/// Between the host and a GPU; on the CPU there is nothing to copy.
void Bench::copy(const void* from, void* to, std::size_t bytes) {
  if (!gpu_) return;
  const auto stream = gpu_->make_stream(StreamPriority::usual);
  gpu_->copy(from, to, bytes, *stream);
  stream->synchronize();
}

}  // namespace ronda::apps
