// The command line of bench_allreduce: what may stand in it, and what it means.
#include "allreduce_bench/options.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>

#include <ronda/collectives/tuning/choice.hpp>
#include <ronda/core/dtype.hpp>
#include <ronda/core/error.hpp>

#include "tool.hpp"

namespace ronda::apps {
namespace {

constexpr std::array dtypes{DType::float32, DType::float64, DType::float16, DType::bfloat16,
                            DType::int8,    DType::uint8,   DType::int32,   DType::int64};

std::vector<std::string> dtype_names() {
  std::vector<std::string> names;
  for (const DType dtype : dtypes) names.emplace_back(name_of(dtype));
  return names;
}

/// A line for each algorithm of the host's memory.
std::string described_algorithms() {
  std::string text = "Algorithms:";
  for (const AllreduceRow* row : allreduce_rows())
    text += "\n  " + std::string(row->name) + ": " + std::string(row->help);
  return text;
}

/// Of how much, and how often.
void add_amounts(CLI::App& app, BenchOptions& options) {
  const auto size = CLI::AsSizeValue(false);
  app.add_option("--min-bytes", options.min_bytes, "smallest size (64K, 1M, 1G are powers of two)")
      ->transform(size)
      ->capture_default_str();
  app.add_option("--max-bytes", options.max_bytes, "largest size")->transform(size)->capture_default_str();
  app.add_option("--factor", options.factor, "from one size to the next")
      ->check(CLI::Range(2, 1 << 20))
      ->capture_default_str();
  app.add_option("--iterations", options.iterations, "allreduces a measurement; 0: by size and time")
      ->check(CLI::Range(0, 1 << 30))
      ->capture_default_str();
  app.add_option("--rounds", options.rounds, "measurements of each; 0: by time")
      ->check(CLI::Range(0, 1 << 30))
      ->capture_default_str();
  app.add_option("--warmup", options.warmup, "allreduces before it")
      ->check(CLI::Range(0, 1 << 30))
      ->capture_default_str();
}

/// Whether ranks write to their buffers before each call, as training does.
void add_modes(CLI::App& app, BenchOptions& options) {
  CLI::Option* const warm = app.add_flag("--warm", options.warm, "sum one buffer repeatedly; the best time counts");
  const std::string help = "each rank rewrites its buffer before each call; medians (default)";
  app.add_flag("--rewrite", help)->excludes(warm);
}

/// What is reduced, how, and beside what.
void add_kinds(CLI::App& app, BenchOptions& options) {
  app.add_option("--dtype", options.dtype, "element type")->check(CLI::IsMember(dtype_names()))->capture_default_str();
  app.add_option("--op", options.op, "what is computed")
      ->check(CLI::IsMember({"sum", "mean", "min", "max", "prod"}))
      ->capture_default_str();
  app.add_option("--algorithm", options.algorithm,
                 listed_names(allreduce_names(DeviceKind::cpu)) + " (GPUs: " +
                     listed_names(allreduce_names(DeviceKind::cuda)) + "); all: each that can be, and auto, in turns")
      ->capture_default_str();
  app.add_option("--device", options.device, "cpu; cuda: in the memory of a GPU a rank")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  app.add_flag("--calibrate", options.calibrate,
               "measure what messages cost anew, and do not take it from the user's cache");
  app.add_option("--compression", options.compression,
                 "of what is sent: none, bf16, fp16, int8, int4, 2bit, auto; all: each of them, in turns")
      ->check(CLI::IsMember({"none", "bf16", "fp16", "int8", "int4", "2bit", "auto", "all"}))
      ->capture_default_str();
  app.add_option("--compare", options.compare, "mpi: MPI_Allreduce beside it, and the ratio")
      ->check(CLI::IsMember({"mpi"}));
}

/// What each option for itself cannot say.
void require_sense(const BenchOptions& options) {
  if (options.min_bytes > options.max_bytes) throw InputError("--min-bytes is larger than --max-bytes");
  if (const std::size_t least = size_of(element_type(options)); options.max_bytes < least)
    throw InputError("--max-bytes " + std::to_string(options.max_bytes) + " is less than one " + options.dtype +
                     " has: " + std::to_string(least));
  const bool may_compress = options.dtype == "float32" && (options.op == "sum" || options.op == "mean");
  if (options.compression != "none" && options.compression != "auto" && !may_compress)
    throw InputError("--compression " + options.compression + " is for sums and means of float32, not for " +
                     options.op + " of " + options.dtype);
  if (options.calibrate && !models(options))
    throw InputError(
        "--calibrate is for what chooses by it: --algorithm auto or all, or --compression auto or all, on CPUs");
  const DeviceKind device = on_gpu(options) ? DeviceKind::cuda : DeviceKind::cpu;
  if (options.algorithm != "all") require_fitting(parse_allreduce(options.algorithm), device);
  if (on_gpu(options) && compares_with_mpi(options))
    throw InputError("--compare mpi is for the memory of CPUs: MPI need not know a GPU's; leave out --device cuda");
}

std::vector<Compression> compressions(const BenchOptions& options) {
  if (options.compression != "all") return {parse_compression(options.compression)};
  return {Compression::none, Compression::bf16,    Compression::fp16,     Compression::int8,
          Compression::int4, Compression::two_bit, Compression::automatic};
}

std::vector<AllreduceAlgorithm> algorithms(const BenchOptions& options, const Topology& topology) {
  if (options.algorithm != "all") return {parse_allreduce(options.algorithm)};
  if (on_gpu(options)) return {AllreduceAlgorithm::staged, AllreduceAlgorithm::automatic};
  std::vector<AllreduceAlgorithm> all;
  const AllreduceTask task{.node_shared = true};  // ways looks at each size
  for (const AllreduceRow* row : allreduce_rows()) {
    const bool sends_as_asked = row->compresses() || options.compression == "none" || options.compression == "auto";
    const bool idle = row->suits != nullptr && !row->suits(task, topology);
    if (sends_as_asked && !idle) all.push_back(row->algorithm);
  }
  all.push_back(AllreduceAlgorithm::automatic);
  return all;
}

}  // namespace

bool parse(int argc, char** argv, BenchOptions& options, WorldOptions& world) {
  CLI::App app(
      "Measures allreduce over the ranks that mpirun starts, for a range of sizes. Each rank rewrites its buffer "
      "before "
      "each call, and times are medians of the slowest rank's. With --warm buffers stay as they are, and times are the "
      "best of many short measurements; --json has their medians, too.",
      "bench_allreduce");
  add_amounts(app, options);
  add_modes(app, options);
  add_kinds(app, options);
  add_world_options(app, world, options.progress);
  app.add_option("--json", options.json, "file for the results");
  app.footer(described_algorithms());
  if (!parse(app, argc, argv)) return false;
  require_sense(options);
  world.progress = parse_progress(options.progress);
  return true;
}

bool on_gpu(const BenchOptions& options) { return options.device == "cuda"; }

bool compares_with_mpi(const BenchOptions& options) { return !options.compare.empty(); }

bool models(const BenchOptions& options) {
  if (on_gpu(options)) return false;
  const auto chooses = [](const std::string& name) { return name == "all" || name == "auto"; };
  return chooses(options.algorithm) || chooses(options.compression);
}

DType element_type(const BenchOptions& options) {
  return *std::ranges::find(dtypes, options.dtype, [](DType dtype) { return name_of(dtype); });
}

std::vector<std::size_t> sizes(const BenchOptions& options) {
  std::vector<std::size_t> sizes;
  for (std::uint64_t bytes = std::max<std::uint64_t>(options.min_bytes, size_of(element_type(options)));
       bytes <= options.max_bytes; bytes *= options.factor) {
    sizes.push_back(bytes);
    if (bytes > options.max_bytes / options.factor) break;  // the next might not fit 64 bits
  }
  return sizes;
}

std::vector<Way> ways(const BenchOptions& options, const Topology& topology, std::size_t bytes, bool shared) {
  std::vector<AllreduceAlgorithm> some = algorithms(options, topology);
  if (options.algorithm == "all")
    std::erase_if(some, [&](AllreduceAlgorithm algorithm) {
      return !refusal_of({.wanted = algorithm, .bytes = bytes, .node_shared = shared}, topology).empty();
    });
  std::vector<Way> ways;
  for (const AllreduceAlgorithm algorithm : some)
    for (const Compression compression : compressions(options)) ways.push_back({algorithm, compression});
  return ways;
}

}  // namespace ronda::apps
