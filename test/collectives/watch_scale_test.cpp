// What a diagnosis of thousands of ranks takes, counted.
#include "support/catch.hpp"

#include <ronda/collectives/watch/diagnosis.hpp>

#include <bit>

namespace ronda::watch_scale_test {
namespace {

/// Ranks that have each done the same; the last record is of what they wait in.
std::vector<RankReport> ranks_that_wait(int ranks, int records) {
  std::vector<RankReport> reports;
  for (int rank = 0; rank < ranks; ++rank) {
    RankReport report{rank, "host" + std::to_string(rank / 32), RankReport::Answer::yes, RankState()};
    report.state->status.rank = rank;
    report.state->status.still = report.state->status.alarmed = true;
    for (int number = 1; number <= records; ++number) {
      Record record = Description(Kind::allreduce, "bucket " + std::to_string(number), "ring", 512).run;
      record.index = record.number = static_cast<std::uint64_t>(number);
      if (number < records) record.what |= std::uint64_t{1} << 24;
      report.state->trail.push_back(record);
    }
    reports.push_back(std::move(report));
  }
  return reports;
}

TEST_CASE("ranks that differ are found in n log n comparisons of n records") {
  constexpr int ranks = 4096, records = 8;
  auto reports = ranks_that_wait(ranks, records);
  std::size_t compared = 0;
  CHECK_FALSE(first_divergence(reports, &compared));
  CHECK(compared == ranks * records);

  for (int rank = 1; rank < ranks; rank += 2) {  // each in a way of its own
    Record& record = reports[static_cast<std::size_t>(rank)].state->trail.back();
    record.count = static_cast<std::uint64_t>(rank);
  }
  compared = 0;
  const auto divergence = first_divergence(reports, &compared);
  REQUIRE(divergence);
  CHECK(divergence->number == records);
  CHECK(divergence->odd.size() == ranks / 2);
  CHECK(compared < ranks * records + 4UL * ranks * static_cast<std::size_t>(std::bit_width(unsigned{ranks})));
  CHECK(diagnose(reports).late.size() == ranks / 2);
}

TEST_CASE("of equally many ranks that differ the one with the lowest rank is as most are") {
  auto reports = ranks_that_wait(4, 1);
  for (const std::size_t rank : {1U, 3U}) reports[rank].state->trail[0].count = 1;  // sorted before the others'
  CHECK(first_divergence(reports).value().odd == std::vector<int>{1, 3});
}

TEST_CASE("a chain of ranks of which each waits for the one before is followed to its end") {
  constexpr int ranks = 4096;
  auto reports = ranks_that_wait(ranks, 1);
  for (int rank = 0; rank < ranks; ++rank) {  // the last in the group that is asked about, the first at work
    RankState& state = *reports[static_cast<std::size_t>(rank)].state;
    state.trail[0].group = rank == ranks - 1 ? 5 : 6;
    state.status.alarmed = rank == ranks - 1;
    state.status.missing_count = 1;
    state.status.missing[0] = rank - 1;
  }
  reports[0].state->status.still = false;
  CHECK(diagnose(reports).late == std::vector<int>{0});
}

}  // namespace
}  // namespace ronda::watch_scale_test
