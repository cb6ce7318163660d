// How fast is an allreduce here, and how much faster than plain MPI_Allreduce? A table in the manner of nccl-tests.
#include <mpi.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <ronda/collectives/launch.hpp>
#include <ronda/collectives/link_costs.hpp>
#include <ronda/runtime/core/device_context.hpp>
#include <ronda/runtime/core/error.hpp>
#include <ronda/runtime/core/process.hpp>
#include <ronda/runtime/files/whole_file.hpp>
#include <ronda/runtime/trainer/link_store.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <type_traits>

#include "tool.hpp"

namespace {

using namespace ronda;

struct Options {
  std::uint64_t min_bytes = 8, max_bytes = std::uint64_t{64} << 20, factor = 4;
  int iterations = 0, warmup = 5, rounds = 0;
  bool calibrate = false;
  std::string dtype = "float32", op = "sum", algorithm = "auto", compare, json, progress = "auto", compression = "none",
              device = "cpu";
};

/// How an allreduce is to be done.
struct Way {
  AllreduceAlgorithm algorithm = AllreduceAlgorithm::automatic;
  Compression compression = Compression::none;
};

struct Result {
  std::size_t bytes = 0, count = 0;
  Way asked;
  std::string algorithm, compression;
  double microseconds = 0, median_microseconds = 0, mpi_microseconds = 0;
  std::optional<double> model_microseconds = {};
  std::size_t wrong = 0;
};

/// Each measurement is short and taken many times, in turns with what it is compared with; the best counts, because
/// whatever disturbs can only slow down. The file has medians too.
constexpr int least_rounds = 5, most_rounds = 100;
constexpr double enough_microseconds = 5e5;
/// What a measurement of several calls takes: beside it, that the ranks do not leave a barrier together is little.
constexpr double measurement_microseconds = 5e4;

bool on_gpu(const Options& options) { return options.device == "cuda"; }

/// Reads the command line; false where it asked for help, which is printed.
bool parse(int argc, char** argv, Options& options, WorldOptions& world) {
  CLI::App app("Measures allreduce over the ranks that mpirun starts, for a range of sizes.", "bench_allreduce");
  const auto size = CLI::AsSizeValue(false);
  app.add_option("--min-bytes", options.min_bytes, "smallest size (64K, 1M, 1G are powers of two)")
      ->transform(size)
      ->capture_default_str();
  app.add_option("--max-bytes", options.max_bytes, "largest size")->transform(size)->capture_default_str();
  app.add_option("--factor", options.factor, "from one size to the next")
      ->check(CLI::Range(2, 1 << 20))
      ->capture_default_str();
  app.add_option("--iterations", options.iterations, "allreduces a measurement; 0: by size and time")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--rounds", options.rounds, "measurements of each; 0: by time")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--warmup", options.warmup, "allreduces before it")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--dtype", options.dtype, "element type")
      ->check(CLI::IsMember({"float32", "float64", "float16", "bfloat16", "int8", "uint8", "int32", "int64"}))
      ->capture_default_str();
  app.add_option("--op", options.op, "what is computed")
      ->check(CLI::IsMember({"sum", "mean", "min", "max", "prod"}))
      ->capture_default_str();
  app.add_option("--algorithm", options.algorithm,
                 "auto, node, ring, halving, doubling, hierarchical, mpi (GPUs: auto, nccl, staged); all: each that "
                 "can be, and "
                 "auto, in turns")
      ->capture_default_str();
  app.add_option("--device", options.device, "cpu; cuda: in the memory of a GPU a rank")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  app.add_flag("--calibrate", options.calibrate,
               "measure what messages cost anew, and do not take it from the user's cache");
  app.add_option("--compression", options.compression,
                 "of what is sent: none, bf16, fp16, int8, auto; all: each of them, in turns")
      ->check(CLI::IsMember({"none", "bf16", "fp16", "int8", "auto", "all"}))
      ->capture_default_str();
  app.add_option("--compare", options.compare, "mpi: MPI_Allreduce beside it, and the ratio")
      ->check(CLI::IsMember({"mpi"}));
  apps::add_world_options(app, world, options.progress);
  app.add_option("--json", options.json, "file for the results");
  if (!apps::parse(app, argc, argv)) return false;
  if (options.min_bytes > options.max_bytes) throw InputError("--min-bytes is larger than --max-bytes");
  const DeviceKind device = on_gpu(options) ? DeviceKind::cuda : DeviceKind::cpu;
  if (options.algorithm != "all") require_fitting(parse_allreduce(options.algorithm), device);
  if (on_gpu(options) && !options.compare.empty())
    throw InputError("--compare mpi is for the memory of CPUs: MPI need not know a GPU's; leave out --device cuda");
  world.progress = parse_progress(options.progress);
  return true;
}

/// What is chosen, or could be: the model's expectation is shown beside it.
bool models(const Options& options) {
  if (on_gpu(options)) return false;
  const auto chooses = [](const std::string& name) { return name == "all" || name == "auto"; };
  return chooses(options.algorithm) || chooses(options.compression);
}

std::vector<Compression> compressions(const Options& options) {
  if (options.compression != "all") return {parse_compression(options.compression)};
  return {Compression::none, Compression::bf16, Compression::fp16, Compression::int8, Compression::automatic};
}

std::vector<AllreduceAlgorithm> algorithms(const Options& options, const Topology& topology) {
  if (options.algorithm != "all") return {parse_allreduce(options.algorithm)};
  if (on_gpu(options)) return {AllreduceAlgorithm::staged, AllreduceAlgorithm::automatic};
  std::vector<AllreduceAlgorithm> all{AllreduceAlgorithm::ring, AllreduceAlgorithm::halving,
                                      AllreduceAlgorithm::doubling};
  if (options.compression == "none" || options.compression == "auto") all.push_back(AllreduceAlgorithm::mpi);
  if (topology.most_ranks_on_a_node > 1)
    all.insert(all.begin(), topology.nodes == 1 ? AllreduceAlgorithm::node : AllreduceAlgorithm::hierarchical);
  all.push_back(AllreduceAlgorithm::automatic);
  return all;
}

std::vector<Way> ways(const Options& options, const Topology& topology) {
  std::vector<Way> ways;
  for (const AllreduceAlgorithm algorithm : algorithms(options, topology))
    for (const Compression compression : compressions(options)) ways.push_back({algorithm, compression});
  return ways;
}

std::vector<std::size_t> sizes(const Options& options, std::size_t element) {
  std::vector<std::size_t> sizes;
  for (std::uint64_t bytes = std::max<std::uint64_t>(options.min_bytes, element); bytes <= options.max_bytes;
       bytes *= options.factor) {
    sizes.push_back(bytes);
    if (bytes > options.max_bytes / options.factor) break;  // the next might not fit 64 bits
  }
  return sizes;
}

/// @param microseconds  what one took
int iterations(const Options& options, std::size_t bytes, double microseconds) {
  if (options.iterations > 0) return options.iterations;
  const auto by_size = std::clamp<std::size_t>((std::size_t{8} << 20) / std::max<std::size_t>(bytes, 1), 1, 200);
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

/// A T of some arithmetic type, or one of the 16-bit types.
template <class T>
T number(double value) {
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<T>(value);
  else
    return to_half<T>(static_cast<float>(value));
}
template <class T>
double value_of(T number) {
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<double>(number);
  else
    return to_float(number);
}

double apply(ReduceOp op, double a, double b) {
  switch (op) {
    case ReduceOp::minimum: return std::min(a, b);
    case ReduceOp::maximum: return std::max(a, b);
    case ReduceOp::product: return a * b;
    default: return a + b;
  }
}

/// Small integers, of which every type (and bf16 and fp16 on the wire) holds the sums of few ranks and the products of
/// some exactly: one allreduce of them, and how many of its results are wrong on any rank.
template <class T>
std::size_t count_wrong(Communicator communicator, std::span<T> data, ReduceOp op, Compression compression,
                        const std::function<void()>& allreduce) {
  const int ranks = communicator.size();
  const auto element = [&](std::size_t i, int rank) -> double {
    const std::size_t mixed = i + static_cast<std::size_t>(rank);
    if (op == ReduceOp::product) return rank < 6 && mixed % 2 == 1 ? 2 : 1;
    return ranks <= 7 ? static_cast<double>(mixed % 17) : static_cast<double>(mixed % 2);
  };
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = number<T>(element(i, communicator.rank()));
  allreduce();
  double wrong = 0;
  // int8 may be off by a step for each rank's part, of numbers up to 16, and by one of the sum's.
  const double steps = 2 * ranks * 16.0 / 126;
  for (std::size_t i = 0; i < data.size(); ++i) {
    double result = element(i, 0);
    for (int rank = 1; rank < ranks; ++rank) result = apply(op, result, element(i, rank));
    if (op == ReduceOp::mean) result /= ranks;
    // A mean is no whole number: off by the rounding of the type at most.
    const bool near = std::abs(value_of(data[i]) - value_of(number<T>(result))) <= 0.01 * std::abs(result);
    const bool right = op == ReduceOp::mean && !std::is_integral_v<T> ? near : data[i] == number<T>(result);
    const bool rounded = compression == Compression::int8 && std::abs(value_of(data[i]) - result) <= steps;
    wrong += right || rounded ? 0 : 1;
  }
  std::fill(data.begin(), data.end(), T{});  // which no number of sums makes infinite
  communicator.allreduce(Tensor(std::span(&wrong, 1)));
  return static_cast<std::size_t>(wrong);
}

template <class T>
MPI_Datatype mpi_type() {
  if constexpr (std::is_same_v<T, float>) return MPI_FLOAT;
  if constexpr (std::is_same_v<T, double>) return MPI_DOUBLE;
  if constexpr (std::is_same_v<T, std::int8_t>) return MPI_INT8_T;
  if constexpr (std::is_same_v<T, std::uint8_t>) return MPI_UINT8_T;
  if constexpr (std::is_same_v<T, std::int32_t>) return MPI_INT32_T;
  if constexpr (std::is_same_v<T, std::int64_t>) return MPI_INT64_T;
  throw InputError("MPI has no 16-bit floating point: --compare mpi takes another --dtype");
}

MPI_Op mpi_operation(ReduceOp op) {
  switch (op) {
    case ReduceOp::minimum: return MPI_MIN;
    case ReduceOp::maximum: return MPI_MAX;
    case ReduceOp::product: return MPI_PROD;
    default: return MPI_SUM;
  }
}

/// One of this host's for each rank on it, in turns; null where nobody asked for one.
std::shared_ptr<DeviceContext> use_gpu(Communicator& communicator, const Options& options) {
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

template <class T>
class Bench {
 public:
  Bench(World& world, const Options& options)
      : communicator_(world.communicator()),
        options_(options),
        op_(parse_reduce_op(options.op)),
        gpu_(use_gpu(communicator_, options)),
        memory_(communicator_.allocate(options.max_bytes, gpu_ ? Memory::on_device : Memory::node_shared)),
        plain_(options.compare.empty() && !gpu_ ? Buffer() : Buffer::host(options.max_bytes)) {}

  std::vector<std::string> notes() { return communicator_.take_notes(); }

  /// Each of `ways`, and MPI's where it was asked for, in turns.
  std::vector<Result> measure(std::size_t bytes, const std::vector<Way>& ways) {
    std::vector<Contender> contenders;
    for (const Way& way : ways) contenders.push_back(contender(bytes / sizeof(T), way));
    Contender mpi;
    if (!options_.compare.empty()) {
      mpi.allreduce = [this, bytes] { plain_allreduce(bytes / sizeof(T)); };
      warm_up(mpi, bytes);
    }
    std::vector<Contender*> turns;
    if (mpi.allreduce) turns.push_back(&mpi);
    for (Contender& contender : contenders) turns.push_back(&contender);
    double spent = 0;  // in the mean; the same on all ranks
    const auto more = [&](int rounds) {
      if (options_.rounds > 0) return rounds < options_.rounds;
      return rounds < least_rounds || (rounds < most_rounds && spent < enough_microseconds);
    };
    for (int round = 0; more(round); ++round) {
      // To and fro, so that each follows each of its neighbours: what lies in the caches is what the one before left.
      for (std::size_t i = 0; i < turns.size(); ++i)
        spent += take_turn(*turns[round % 2 == 0 ? i : turns.size() - 1 - i]) / static_cast<double>(turns.size());
    }
    std::vector<Result> results;
    for (Contender& contender : contenders) {
      Result& result = results.emplace_back(std::move(contender.result));
      result.microseconds = std::ranges::min(contender.times);
      result.median_microseconds = apps::median(contender.times);
      if (mpi.allreduce) result.mpi_microseconds = std::ranges::min(mpi.times);
    }
    return results;
  }

 private:
  struct Contender {
    Result result;
    std::unique_ptr<Collective> plan;
    std::function<void()> allreduce;
    int repetitions = 1;
    std::vector<double> times;  ///< microseconds
  };

  Contender contender(std::size_t count, const Way& way) {
    const std::span data(reinterpret_cast<T*>((gpu_ ? plain_ : memory_).data()), count);
    const TensorDesc desc{Shape{static_cast<std::int64_t>(count)}, dtype_of<T>, {}};
    const AllreduceSpec spec{.tensors = {Tensor(desc, memory_.data(), memory_.device())},
                             .op = op_,
                             .algorithm = way.algorithm,
                             .label = "bench",
                             .compression = way.compression};
    Contender one;
    auto plan = communicator_.plan(spec);
    one.result.bytes = count * sizeof(T);
    one.result.count = count;
    one.result.asked = way;
    one.result.algorithm = plan->algorithm();
    one.result.compression = name_of(plan->compression());
    if (const auto predicted = plan->times().predicted) one.result.model_microseconds = *predicted * 1e6;
    one.result.wrong = count_wrong(communicator_, data, op_, plan->compression(), [&] {
      copy(data.data(), memory_.data(), data.size_bytes());
      plan->start().wait();
      copy(memory_.data(), data.data(), data.size_bytes());
    });
    copy(data.data(), memory_.data(), data.size_bytes());
    one.plan = communicator_.plan(spec);  // without what int8 has lost, which no number of sums is to make infinite
    one.allreduce = [planned = one.plan.get()] { planned->start().wait(); };
    warm_up(one, count * sizeof(T));
    return one;
  }

  void warm_up(Contender& contender, std::size_t bytes) {
    for (int i = 0; i < options_.warmup; ++i) contender.allreduce();
    contender.repetitions = iterations(options_, bytes, time(communicator_, 1, contender.allreduce));
  }

  /// What all of it took.
  double take_turn(Contender& contender) {
    contender.times.push_back(time(communicator_, contender.repetitions, contender.allreduce));
    return contender.repetitions * contender.times.back();
  }

  /// Between the host and a GPU; on the CPU there is nothing to copy.
  void copy(const void* from, void* to, std::size_t bytes) {
    if (!gpu_) return;
    const auto stream = gpu_->make_stream(StreamPriority::usual);
    gpu_->copy(from, to, bytes, *stream);
    stream->synchronize();
  }

  /// What a program without Ronda would do with private memory.
  void plain_allreduce(std::size_t count) {
    constexpr std::size_t most = std::size_t{1} << 30;
    for (std::size_t at = 0; at < count; at += most)
      MPI_Allreduce(MPI_IN_PLACE, plain_.data() + at * sizeof(T), static_cast<int>(std::min(most, count - at)),
                    mpi_type<T>(), mpi_operation(op_), MPI_COMM_WORLD);
  }

  Communicator communicator_;
  const Options& options_;
  ReduceOp op_;
  std::shared_ptr<DeviceContext> gpu_;  ///< null: the CPU
  Buffer memory_, plain_;
};

double algorithm_bandwidth(const Result& result) {
  return static_cast<double>(result.bytes) / result.microseconds / 1e3;
}

/// What each link carries at that speed: comparable over numbers of ranks.
double bus_bandwidth(const Result& result, int ranks) { return algorithm_bandwidth(result) * 2 * (ranks - 1) / ranks; }

void print_head(const World& world, const Options& options) {
  const auto& hosts = world.communicator().topology().hosts;
  std::printf("# %d ranks on %zu hosts (%s), %s, progress %s, %d cores a rank\n", world.size(),
              std::set<std::string>(hosts.begin(), hosts.end()).size(), hosts[0].c_str(), processor_name().c_str(),
              std::string(name_of(world.progress())).c_str(), world.cores());
  std::printf(
      "#      bytes        count     type   op              algorithm     time(us)  algbw(GB/s)  busbw(GB/s)  "
      "wrong%s%s\n",
      models(options) ? "    model(us)" : "", options.compare.empty() ? "" : "      mpi(us)  ratio");
}

/// `ring`, `ring,bf16`, or, where something was chosen, `auto:ring,auto:bf16`.
std::string how(const Result& result) {
  std::string text = (result.asked.algorithm == AllreduceAlgorithm::automatic ? "auto:" : "") + result.algorithm;
  if (result.asked.compression == Compression::automatic) return text + ",auto:" + result.compression;
  return result.compression == "none" ? text : text + "," + result.compression;
}

void print(const Result& result, const Options& options, int ranks) {
  std::printf("%12zu %12zu %8s %4s %22s %12.2f %12.3f %12.3f %6zu", result.bytes, result.count, options.dtype.c_str(),
              options.op.c_str(), how(result).c_str(), result.microseconds, algorithm_bandwidth(result),
              bus_bandwidth(result, ranks), result.wrong);
  if (result.model_microseconds) std::printf(" %12.2f", *result.model_microseconds);
  if (!result.model_microseconds && models(options)) std::printf(" %12s", "-");
  if (!options.compare.empty())
    std::printf(" %12.2f %6.2f", result.mpi_microseconds, result.mpi_microseconds / result.microseconds);
  std::printf("\n");
  std::fflush(stdout);
}

/// How far auto was from the best, where it was farthest; medians.
void print_worst_choice(const std::vector<Result>& results) {
  std::map<std::size_t, double> best, chosen;
  for (const Result& result : results) {
    auto& by_size = result.asked.algorithm == AllreduceAlgorithm::automatic ? chosen : best;
    const auto entry = by_size.emplace(result.bytes, result.median_microseconds).first;
    entry->second = std::min(entry->second, result.median_microseconds);
  }
  std::pair<double, std::size_t> worst{0, 0};
  for (const auto& [bytes, microseconds] : chosen) worst = std::max(worst, {microseconds / best[bytes], bytes});
  std::printf("# auto took at most %.2f times as long as the best of the others, at %zu bytes (medians)\n", worst.first,
              worst.second);
}

nlohmann::json to_json(const World& world, const Options& options, const std::vector<Result>& results) {
  const auto& hosts = world.communicator().topology().hosts;
  nlohmann::json json{{"ranks", world.size()},
                      {"hosts", std::set<std::string>(hosts.begin(), hosts.end()).size()},
                      {"dtype", options.dtype},
                      {"op", options.op},
                      {"processor", processor_name()},
                      {"progress", name_of(world.progress())},
                      {"results", nlohmann::json::array()}};
  for (const Result& result : results) {
    nlohmann::json line{{"bytes", result.bytes},
                        {"asked", name_of(result.asked.algorithm)},
                        {"asked_compression", name_of(result.asked.compression)},
                        {"algorithm", result.algorithm},
                        {"compression", result.compression},
                        {"microseconds", result.microseconds},
                        {"median_microseconds", result.median_microseconds},
                        {"algbw_GBps", algorithm_bandwidth(result)},
                        {"busbw_GBps", bus_bandwidth(result, world.size())},
                        {"wrong", result.wrong}};
    if (result.model_microseconds) line["model_microseconds"] = *result.model_microseconds;
    if (!options.compare.empty()) line["mpi_microseconds"] = result.mpi_microseconds;
    json["results"].push_back(std::move(line));
  }
  return json;
}

template <class T>
int run(World& world, const Options& options) {
  const bool speaks = world.rank() == 0;
  if (!options.compare.empty()) agree(world.communicator(), [] { static_cast<void>(mpi_type<T>()); });
  LinkStore links(world.communicator(), world.progress());
  if (models(options) && world.size() > 1) {
    if (!options.calibrate) links.load();
    static_cast<void>(world.communicator().link_costs());
  }
  Bench<T> bench(world, options);
  if (speaks) print_head(world, options);
  for (const auto& note : bench.notes())
    if (speaks) std::printf("# %s\n", note.c_str());

  std::vector<Result> results;
  for (const std::size_t bytes : sizes(options, sizeof(T)))
    for (Result& result : bench.measure(bytes, ways(options, world.communicator().topology()))) {
      if (speaks) print(result, options, world.size());
      results.push_back(std::move(result));
    }
  links.keep();
  if (speaks && options.algorithm == "all" && options.compression != "all") print_worst_choice(results);

  agree(world.communicator(), [&] {
    if (speaks && !options.json.empty()) write_text(options.json, to_json(world, options, results).dump(2) + "\n");
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
      [&](World& world) {
        if (options.dtype == "float64") return run<double>(world, options);
        if (options.dtype == "float16") return run<Float16>(world, options);
        if (options.dtype == "bfloat16") return run<BFloat16>(world, options);
        if (options.dtype == "int8") return run<std::int8_t>(world, options);
        if (options.dtype == "uint8") return run<std::uint8_t>(world, options);
        if (options.dtype == "int32") return run<std::int32_t>(world, options);
        if (options.dtype == "int64") return run<std::int64_t>(world, options);
        return run<float>(world, options);
      });
}
