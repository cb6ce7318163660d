#include <ronda/collectives/host/algorithms/gathering.hpp>
#include <ronda/collectives/host/engine/planned_collective.hpp>
#include <ronda/collectives/members/meeting.hpp>
#include <ronda/core/hash.hpp>

#include <algorithm>
#include <utility>

namespace ronda {
namespace {

/// Not inlined: GCC would see a delete of its own, and take it for one that does not fit.
[[gnu::noinline]] std::unique_ptr<Collective> planned(const std::shared_ptr<Engine>& engine,
                                                      std::unique_ptr<Algorithm> algorithm, std::string_view place,
                                                      Ledger& ledger) {
  std::vector<std::unique_ptr<Algorithm>> algorithms;
  algorithms.push_back(std::move(algorithm));
  return std::make_unique<PlannedCollective>(engine, std::move(algorithms), "messages", Description(Kind::mpi, place),
                                             ledger, nullptr);
}

}  // namespace

Meeting::Meeting(std::shared_ptr<Engine> engine, const mpi::Communicator& communicator, std::vector<int> names)
    : engine_(std::move(engine)),
      communicator_(communicator.handle()),
      rank_(communicator.rank()),
      members_(MpiTransport::up_to(communicator.size())) {
  ledger_.world_ranks = std::move(names);
}

void Meeting::gather(std::span<const std::byte> mine, std::span<std::byte> all, const std::vector<std::size_t>& bytes) {
  if (members_->size() == 1) {
    std::ranges::copy(mine, all.begin());
    return;
  }
  const std::uint64_t place = Hash().add(place_).add(++gatherings_).value();
  auto algorithm = std::make_unique<Gathering>(
      std::make_unique<MpiTransport>(communicator_, rank_, members_, Tag(TagPool::of_meetings)), place, mine, bytes);
  const Gathering& gathering = *algorithm;
  const auto run = planned(engine_, std::move(algorithm), place_, ledger_);
  run->start().wait();
  gathering.copy_to(all);
}

}  // namespace ronda
