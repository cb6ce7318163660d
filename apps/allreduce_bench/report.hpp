// What bench_allreduce says: a table in the manner of nccl-tests for people, and a file for programs.
#pragma once
#include <string>
#include <vector>

#include <ronda/collectives/world.hpp>

#include "allreduce_bench/options.hpp"
#include "allreduce_bench/result.hpp"

namespace ronda::apps {

void print_head(const World& world, const BenchOptions& options);
void print(const Result& result, const BenchOptions& options, int ranks);

/// How far auto was from the best, where it was farthest; medians.
void print_worst_choice(const std::vector<Result>& results);

/// The same for programs.
[[nodiscard]] std::string json_text(const World& world, const BenchOptions& options,
                                    const std::vector<Result>& results);

}  // namespace ronda::apps
