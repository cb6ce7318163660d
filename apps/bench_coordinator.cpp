// How many named tensors a second go through the coordinator, handed in in another order on every rank, and what does
// that cost beside buckets that were planned once? Every row verifies its results.
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <ronda/collectives/launch.hpp>
#include <ronda/coordinator/coordinator.hpp>
#include <ronda/core/clock.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/process.hpp>
#include <ronda/core/text.hpp>
#include <ronda/runtime/io/whole_file.hpp>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <numeric>
#include <random>
#include <thread>

#include "tool.hpp"

namespace {

using namespace ronda;

struct Options {
  std::vector<std::size_t> tensors{1, 64, 1000};
  std::vector<std::uint64_t> bytes{std::uint64_t{4} << 10, std::uint64_t{64} << 10, std::uint64_t{1} << 20,
                                   std::uint64_t{4} << 20};
  std::uint64_t memory = std::uint64_t{1} << 30, bucket_bytes = std::uint64_t{4} << 20;
  int rounds = 0, threads = 1;
  double warmup_seconds = 1;
  std::string json, progress = "auto";
};

struct Result {
  std::size_t tensors = 0, bytes = 0, wrong = 0;
  double microseconds = 0, bucketed_microseconds = 0;  ///< of a round: medians
  double cycles = 0;                                   ///< a round, in which something was reduced
  std::size_t batch_bytes = 0;
  double gather_microseconds = 0;

  [[nodiscard]] double tensors_a_second() const { return static_cast<double>(tensors) / microseconds * 1e6; }
};

/// Reads the command line; false where it asked for help, which is printed.
bool parse(int argc, char** argv, Options& options, WorldOptions& world) {
  CLI::App app("Measures how many named tensors a second the coordinator reduces over the ranks that mpirun starts.",
               "bench_coordinator");
  const auto size = CLI::AsSizeValue(false);
  app.add_option("--tensors", options.tensors, "how many in a round: 1,64,1000")
      ->delimiter(',')
      ->check(CLI::Range(1, 60000))
      ->capture_default_str();
  app.add_option("--bytes", options.bytes, "of each tensor: 4K,64K,1M,4M")
      ->delimiter(',')
      ->transform(size)
      ->capture_default_str();
  app.add_option("--memory", options.memory, "rows that need more of it on a rank are left out")
      ->transform(size)
      ->capture_default_str();
  app.add_option("--bucket-bytes", options.bucket_bytes, "of the planned buckets beside it")
      ->transform(size)
      ->capture_default_str();
  app.add_option("--rounds", options.rounds, "a measurement; 0: by size")
      ->check(CLI::Range(0, 1 << 30))
      ->capture_default_str();
  app.add_option("--threads", options.threads, "that hand in tensors, on each rank")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--warmup-seconds", options.warmup_seconds,
                 "a row at least; up to ten times as long, until the coordinator has tuned itself")
      ->check(CLI::Range(0.0, 1e4))
      ->capture_default_str();
  apps::add_world_options(app, world, options.progress);
  app.add_option("--json", options.json, "file for the results");
  if (!apps::parse(app, argc, argv)) return false;
  for (const std::uint64_t bytes : options.bytes)
    if (bytes < sizeof(float)) throw InputError("--bytes of a tensor is at least " + std::to_string(sizeof(float)));
  if (options.bucket_bytes < sizeof(float)) throw InputError("--bucket-bytes is too small");
  world.progress = parse_progress(options.progress);
  world.any_thread = true;
  return true;
}

int rounds(const Options& options, std::size_t bytes) {
  if (options.rounds > 0) return options.rounds;
  return static_cast<int>(std::clamp<std::size_t>((std::size_t{2} << 30) / bytes, 5, 500));
}

/// Small integers, of which float32 holds the sums exactly.
float number(std::size_t i, int rank) { return static_cast<float>((i + 3 * static_cast<std::size_t>(rank)) % 17); }

std::size_t count_wrong(std::span<const float> sums, int ranks) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    float sum = 0;
    for (int rank = 0; rank < ranks; ++rank) sum += number(i, rank);
    wrong += sums[i] == sum ? 0 : 1;
  }
  return wrong;
}

/// Tensors of a program that knows nothing of Ronda, and the coordinator they go through.
class Rounds {
 public:
  Rounds(Coordinator& coordinator, std::size_t tensors, std::size_t bytes, int threads)
      : coordinator_(coordinator), memory_(Buffer::host(tensors * bytes)), threads_(threads), order_(tensors) {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    for (std::size_t i = 0; i < tensors; ++i) {
      tensors_.push_back(numbers().subspan(i * (bytes / sizeof(float)), bytes / sizeof(float)));
      names_.push_back("tensor " + std::to_string(i) + " of " + std::to_string(bytes));
    }
  }

  /// Seconds for one, from when all ranks are there.
  double run() {
    std::shuffle(order_.begin(), order_.end(), random_);
    coordinator_.barrier("a round").wait();
    const double start = steady_seconds();
    std::vector<std::thread> others;
    for (int thread = 1; thread < threads_; ++thread) others.emplace_back([this, thread] { submit(thread); });
    submit(0);
    for (auto& other : others) other.join();
    return steady_seconds() - start;
  }

  std::size_t check() {
    for (std::size_t i = 0; i < numbers().size(); ++i) numbers()[i] = number(i, coordinator_.rank());
    run();
    double wrong = static_cast<double>(count_wrong(numbers(), coordinator_.size()));
    std::fill(numbers().begin(), numbers().end(), 0.0F);  // which no number of sums makes infinite
    coordinator_.allreduce("wrong", Tensor(std::span(&wrong, 1))).wait();
    return static_cast<std::size_t>(wrong);
  }

 private:
  [[nodiscard]] std::span<float> numbers() const {
    return {reinterpret_cast<float*>(memory_.data()), memory_.bytes() / sizeof(float)};
  }
  void submit(int thread) {
    std::vector<Ticket> tickets;
    tickets.reserve(order_.size());
    for (auto i = static_cast<std::size_t>(thread); i < order_.size(); i += static_cast<std::size_t>(threads_))
      tickets.push_back(coordinator_.allreduce(names_[order_[i]], Tensor(tensors_[order_[i]])));
    for (const Ticket& ticket : tickets) ticket.wait();
  }

  Coordinator& coordinator_;
  Buffer memory_;
  int threads_;
  std::vector<std::span<float>> tensors_;
  std::vector<std::string> names_;
  std::vector<std::size_t> order_;
  std::mt19937 random_{static_cast<unsigned>(coordinator_.rank() + 1)};
};

/// What one cycle takes in which all have come, and nothing is to be reduced.
double cycle_microseconds(const Communicator& communicator) {
  Coordinator coordinator(communicator);
  constexpr int count = 2000;
  std::vector<double> times;
  for (int i = 0; i < count; ++i) {
    const double start = steady_seconds();
    coordinator.barrier("a cycle").wait();
    times.push_back(steady_seconds() - start);
  }
  coordinator.close();
  return apps::median(times) * 1e6;
}

/// Until the coordinator has stood by its settings for longer than a trial of others takes, but no longer than ten
/// times what was asked for.
class WarmUp {
 public:
  explicit WarmUp(double seconds) : seconds_(seconds) {}

  bool over(const Coordinator::Statistics& now) {
    const double time = steady_seconds();
    if (now.batch_bytes != batch_bytes_ || now.gather_seconds != gather_seconds_) {
      batch_bytes_ = now.batch_bytes;
      gather_seconds_ = now.gather_seconds;
      changed_ = time;
      cycles_ = now.busy_cycles;
    }
    constexpr double longer_than_a_trial = 0.35;
    constexpr std::uint64_t more_cycles_than_one = 60;
    const bool settled = time - changed_ > longer_than_a_trial && now.busy_cycles - cycles_ > more_cycles_than_one;
    return time - start_ > seconds_ && (settled || time - start_ > 10 * seconds_);
  }

 private:
  double seconds_, start_ = steady_seconds(), changed_ = start_;
  std::size_t batch_bytes_ = 0;
  double gather_seconds_ = 0;
  std::uint64_t cycles_ = 0;
};

void measure_coordinator(const Communicator& communicator, const Options& options, Result& result) {
  Coordinator coordinator(communicator);
  Rounds rounds_of(coordinator, result.tensors, result.bytes, options.threads);
  result.wrong = rounds_of.check();
  const int count = rounds(options, result.tensors * result.bytes);
  std::int32_t warm = 0;  // rank 0 says when all are
  for (WarmUp warm_up(options.warmup_seconds); warm == 0;) {
    rounds_of.run();
    warm = warm_up.over(coordinator.statistics()) ? 1 : 0;
    coordinator.broadcast("warm", Tensor(std::span(&warm, 1))).wait();
  }
  std::vector<double> times;
  const auto before = coordinator.statistics();
  for (int round = 0; round < count; ++round) times.push_back(rounds_of.run());
  const auto after = coordinator.statistics();
  result.microseconds = apps::median(times) * 1e6;
  // A round's barrier is a cycle as well, and not part of its time.
  result.cycles = static_cast<double>(after.busy_cycles - before.busy_cycles) / count - 1;
  result.batch_bytes = after.batch_bytes;
  result.gather_microseconds = after.gather_seconds * 1e6;
  coordinator.allreduce("slowest", Tensor(std::span(&result.microseconds, 1)), ReduceOp::maximum).wait();
  coordinator.close();
}

/// The same bytes as a model's gradients go: in memory that reduces fastest, in buckets planned once.
double bucketed_microseconds(Communicator communicator, const Options& options, std::size_t bytes) {
  const Buffer arena = communicator.allocate(bytes, Memory::node_shared);
  const std::span numbers(reinterpret_cast<float*>(arena.data()), bytes / sizeof(float));
  const std::size_t in_bucket = options.bucket_bytes / sizeof(float);
  std::vector<std::unique_ptr<Collective>> buckets;
  for (std::size_t at = 0; at < numbers.size(); at += in_bucket)
    buckets.push_back(
        communicator.plan(AllreduceSpec{{Tensor(numbers.subspan(at, std::min(in_bucket, numbers.size() - at)))},
                                        ReduceOp::sum,
                                        AllreduceAlgorithm::automatic,
                                        "bucket " + std::to_string(buckets.size())}));
  const auto round = [&] {
    communicator.barrier();
    const double start = steady_seconds();
    std::vector<Event> done;
    done.reserve(buckets.size());
    for (const auto& bucket : buckets) done.push_back(bucket->start());
    for (const Event& event : done) event.wait();
    return steady_seconds() - start;
  };
  std::vector<double> times;
  for (int i = 0; i < 3; ++i) round();
  for (int i = 0; i < rounds(options, bytes); ++i) times.push_back(round());
  double microseconds = apps::median(times) * 1e6;
  communicator.allreduce(Tensor(std::span(&microseconds, 1)), ReduceOp::maximum);
  return microseconds;
}

/// The two in turns, so that what disturbs the machine disturbs both.
Result measure(const Communicator& communicator, const Options& options, std::size_t tensors, std::size_t bytes) {
  Result result;
  result.tensors = tensors;
  result.bytes = bytes / sizeof(float) * sizeof(float);
  const double before = bucketed_microseconds(communicator, options, tensors * result.bytes);
  measure_coordinator(communicator, options, result);
  const double after = bucketed_microseconds(communicator, options, tensors * result.bytes);
  result.bucketed_microseconds = std::min(before, after);
  return result;
}

void print_head(const World& world, const Options& options, double cycle) {
  const auto& hosts = world.communicator().topology().hosts;
  std::printf("# %s on %s (%s), %s, progress %s, threads a rank that hand in float32 to be summed: %d\n",
              counted(world.size(), "rank").c_str(),
              counted(static_cast<std::int64_t>(hosts.names().size()), "host").c_str(), hosts[0].c_str(),
              processor_name().c_str(), std::string(name_of(world.progress())).c_str(), options.threads);
  std::printf("# a cycle with nothing to reduce: %.1f us from submission to result\n", cycle);
  std::printf(
      "#   tensors      bytes   round(us)    tensors/s  cycles/round  batch(KiB)  gather(us)  buckets(us)  ratio  "
      "wrong\n");
}

void print(const Result& result) {
  std::printf("%11zu %10zu %11.1f %12.0f %13.1f %11zu %11.0f %12.1f %6.2f %6zu\n", result.tensors, result.bytes,
              result.microseconds, result.tensors_a_second(), result.cycles, result.batch_bytes >> 10,
              result.gather_microseconds, result.bucketed_microseconds,
              result.microseconds / result.bucketed_microseconds, result.wrong);
  std::fflush(stdout);
}

nlohmann::json to_json(const World& world, const Options& options, double cycle, const std::vector<Result>& results) {
  const auto& hosts = world.communicator().topology().hosts;
  nlohmann::json json{{"ranks", world.size()},
                      {"hosts", hosts.names().size()},
                      {"processor", processor_name()},
                      {"progress", name_of(world.progress())},
                      {"threads", options.threads},
                      {"cycle_microseconds", cycle},
                      {"results", nlohmann::json::array()}};
  for (const Result& result : results)
    json["results"].push_back({{"tensors", result.tensors},
                               {"bytes", result.bytes},
                               {"microseconds", result.microseconds},
                               {"tensors_per_second", result.tensors_a_second()},
                               {"cycles", result.cycles},
                               {"batch_bytes", result.batch_bytes},
                               {"gather_microseconds", result.gather_microseconds},
                               {"bucketed_microseconds", result.bucketed_microseconds},
                               {"wrong", result.wrong}});
  return json;
}

int run(World& world, const Options& options) {
  const bool speaks = world.rank() == 0;
  apps::require_output(world, {"--json", options.json});
  const double cycle = cycle_microseconds(world.communicator());
  if (speaks) print_head(world, options, cycle);
  std::vector<Result> results;
  for (const std::size_t tensors : options.tensors)
    for (const std::uint64_t bytes : options.bytes) {
      if (tensors * bytes > options.memory) {
        if (speaks)
          std::printf("# %zu tensors of %zu bytes: left out, more than --memory\n", tensors,
                      static_cast<std::size_t>(bytes));
        continue;
      }
      results.push_back(measure(world.communicator(), options, tensors, bytes));
      if (speaks) print(results.back());
    }
  agree(world.communicator(), [&] {
    if (speaks && !options.json.empty())
      write_text(options.json, to_json(world, options, cycle, results).dump(2) + "\n");
  });
  const bool correct =
      std::all_of(results.begin(), results.end(), [](const Result& result) { return result.wrong == 0; });
  return static_cast<int>(correct ? ExitStatus::done : ExitStatus::failed);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return launch(
      argc, argv, [&](WorldOptions& world) { return parse(argc, argv, options, world); },
      [&](World& world) { return run(world, options); });
}
