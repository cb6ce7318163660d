// The table's columns and the file's fields, and the speeds that they have.
#include "allreduce_bench/report.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <map>

#include <ronda/core/process.hpp>
#include <ronda/core/text.hpp>

namespace ronda::apps {
namespace {

double algorithm_bandwidth(const Result& result) {
  return static_cast<double>(result.bytes) / result.microseconds / 1e3;
}

/// What each link carries at that speed: comparable over numbers of ranks.
double bus_bandwidth(const Result& result, int ranks) { return algorithm_bandwidth(result) * 2 * (ranks - 1) / ranks; }

std::size_t count_hosts(const World& world) { return world.communicator().topology().hosts.names().size(); }

/// `ring`, `ring,bf16`, or, where something was chosen, `auto:ring,auto:bf16`.
std::string how(const Result& result) {
  std::string text = (result.asked.algorithm == AllreduceAlgorithm::automatic ? "auto:" : "") + result.algorithm;
  if (result.asked.compression == Compression::automatic) return text + ",auto:" + result.compression;
  return result.compression == "none" ? text : text + "," + result.compression;
}

nlohmann::json to_json(const Result& result, const BenchOptions& options, int ranks) {
  nlohmann::json json{{"bytes", result.bytes},
                      {"asked", name_of(result.asked.algorithm)},
                      {"asked_compression", name_of(result.asked.compression)},
                      {"algorithm", result.algorithm},
                      {"compression", result.compression},
                      {"microseconds", result.microseconds},
                      {"median_microseconds", result.median_microseconds},
                      {"algbw_GBps", algorithm_bandwidth(result)},
                      {"busbw_GBps", bus_bandwidth(result, ranks)},
                      {"wrong", result.wrong}};
  if (result.model_microseconds) json["model_microseconds"] = *result.model_microseconds;
  if (compares_with_mpi(options)) json["mpi_microseconds"] = result.mpi_microseconds;
  return json;
}

}  // namespace

void print_head(const World& world, const BenchOptions& options) {
  std::printf("# %s on %s (%s), %s, progress %s, %s a rank\n", counted(world.size(), "rank").c_str(),
              counted(static_cast<std::int64_t>(count_hosts(world)), "host").c_str(),
              world.communicator().topology().hosts[0].c_str(), processor_name().c_str(),
              std::string(name_of(world.progress())).c_str(), counted(world.cores(), "core").c_str());
  std::printf("# %s\n", options.warm ? "warm: one buffer is summed repeatedly; the best of many measurements"
                                     : "each rank rewrites its buffer before each call; medians");
  std::printf(
      "#      bytes        count     type   op              algorithm     time(us)  algbw(GB/s)  busbw(GB/s)  "
      "wrong%s%s\n",
      models(options) ? "    model(us)" : "", compares_with_mpi(options) ? "      mpi(us)  ratio" : "");
}

void print(const Result& result, const BenchOptions& options, int ranks) {
  std::printf("%12zu %12zu %8s %4s %22s %12.2f %12.3f %12.3f %6zu", result.bytes, result.count, options.dtype.c_str(),
              options.op.c_str(), how(result).c_str(), result.microseconds, algorithm_bandwidth(result),
              bus_bandwidth(result, ranks), result.wrong);
  if (result.model_microseconds) std::printf(" %12.2f", *result.model_microseconds);
  if (!result.model_microseconds && models(options)) std::printf(" %12s", "-");
  if (compares_with_mpi(options))
    std::printf(" %12.2f %6.2f", result.mpi_microseconds, result.mpi_microseconds / result.microseconds);
  std::printf("\n");
  std::fflush(stdout);
}

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

std::string json_text(const World& world, const BenchOptions& options, const std::vector<Result>& results) {
  nlohmann::json json{{"ranks", world.size()},
                      {"hosts", count_hosts(world)},
                      {"dtype", options.dtype},
                      {"op", options.op},
                      {"mode", options.warm ? "warm" : "rewrite"},
                      {"processor", processor_name()},
                      {"progress", name_of(world.progress())},
                      {"results", nlohmann::json::array()}};
  for (const Result& result : results) json["results"].push_back(to_json(result, options, world.size()));
  return json.dump(2) + "\n";
}

}  // namespace ronda::apps
