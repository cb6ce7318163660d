// How fast is an allreduce here, and how much faster than plain MPI_Allreduce? A table in the manner of nccl-tests.
#include <algorithm>
#include <cstdio>
#include <vector>

#include <ronda/collectives/launch.hpp>
#include <ronda/collectives/link_costs.hpp>
#include <ronda/core/error.hpp>
#include <ronda/runtime/io/whole_file.hpp>
#include <ronda/runtime/trainer/link_store.hpp>

#include "allreduce_bench/bench.hpp"
#include "allreduce_bench/options.hpp"
#include "allreduce_bench/plain_mpi.hpp"
#include "allreduce_bench/report.hpp"
#include "tool.hpp"

namespace {

using namespace ronda;
using apps::BenchOptions;
using apps::Result;

int run(World& world, const BenchOptions& options) {
  const bool speaks = world.rank() == 0;
  apps::require_output(world, {"--json", options.json});
  if (apps::compares_with_mpi(options))
    agree(world.communicator(), [&] { apps::require_known_to_mpi(apps::element_type(options)); });
  LinkStore links(world.communicator(), world.progress());
  if (apps::models(options) && world.size() > 1) {
    if (!options.calibrate) links.load();
    static_cast<void>(world.communicator().link_costs());
  }
  apps::Bench bench(world, options);
  if (speaks) apps::print_head(world, options);
  for (const auto& note : bench.notes())
    if (speaks) std::printf("# %s\n", note.text().c_str());

  std::vector<Result> results;
  for (const std::size_t bytes : apps::sizes(options))
    for (Result& result :
         bench.measure(bytes, apps::ways(options, world.communicator().topology(), bytes, bench.shares_memory()))) {
      if (speaks) apps::print(result, options, world.size());
      results.push_back(std::move(result));
    }
  links.keep();
  if (speaks && options.algorithm == "all" && options.compression != "all") apps::print_worst_choice(results);

  agree(world.communicator(), [&] {
    if (speaks && !options.json.empty()) write_text(options.json, apps::json_text(world, options, results));
  });
  const bool correct = std::ranges::all_of(results, [](const Result& result) { return result.wrong == 0; });
  return static_cast<int>(correct ? ExitStatus::done : ExitStatus::failed);
}

}  // namespace

int main(int argc, char** argv) {
  BenchOptions options;
  return launch(
      argc, argv, [&](WorldOptions& world) { return apps::parse(argc, argv, options, world); },
      [&](World& world) { return run(world, options); });
}
