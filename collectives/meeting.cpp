#include <ronda/collectives/algorithms/gathering.hpp>
#include <ronda/collectives/meeting.hpp>
#include <ronda/collectives/planned_collective.hpp>
#include <ronda/runtime/core/hash.hpp>

#include <algorithm>
#include <utility>

namespace ronda {

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
  std::vector<std::unique_ptr<Algorithm>> algorithms;
  algorithms.push_back(std::move(algorithm));
  const std::unique_ptr<Collective> run = std::make_unique<PlannedCollective>(
      engine_, std::move(algorithms), "messages", Description(Kind::mpi, place_), ledger_, nullptr);
  run->start().wait();
  gathering.copy_to(all);
}

}  // namespace ronda
