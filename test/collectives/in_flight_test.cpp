// Blocking calls of one group while other collectives are in flight that only end later: what MPI allows.
#include "support/operands.hpp"
#include "support/rank_case.hpp"

#include <ronda/collectives/communicator.hpp>

#include <algorithm>
#include <memory>
#include <vector>

namespace ronda::in_flight_test {
namespace {

Tensor tensor(std::vector<float>& values) { return Tensor(std::span(values)); }

RANK_CASE("a barrier, a plan, a split and texts pass while a receive waits for what is sent after them") {
  Communicator all = test::world().communicator();
  const int rank = all.rank(), ranks = all.size();
  if (ranks == 1) return;
  std::vector<float> incoming(100'000), outgoing(100'000, static_cast<float>(rank + 1)), sums(5000, 1.0F);
  const int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
  const auto receive = all.plan(ReceiveSpec{tensor(incoming), left});
  const Event received = receive->start();
  all.barrier();
  CHECK(all.gather_texts(std::to_string(rank)).back() == std::to_string(ranks - 1));
  CHECK(all.broadcast_text(rank == 1 ? "text" : "", 1) == "text");
  Communicator part = all.split(rank % 2, rank);
  part.barrier();
  const Buffer shared = all.allocate(1000, Memory::node_shared);
  all.allreduce(tensor(sums));
  CHECK(sums.back() == static_cast<float>(ranks));
  CHECK_FALSE(received.ready());
  all.barrier();
  all.send(tensor(outgoing), right);
  received.wait();
  CHECK(incoming.back() == static_cast<float>(left + 1));
}

RANK_CASE("more messages than a group has channels for pairs are in flight, and arrive in the order of starts") {
  Communicator all = test::world().communicator();
  const int rank = all.rank(), ranks = all.size();
  if (ranks == 1) return;
  constexpr std::size_t messages = 80;
  std::vector<std::vector<float>> outgoing, incoming(messages, std::vector<float>(300'000));  // of several pieces
  std::vector<std::unique_ptr<Collective>> plans;
  for (std::size_t i = 0; i < messages; ++i) {
    outgoing.emplace_back(300'000, static_cast<float>(i));
    plans.push_back(all.plan(ReceiveSpec{tensor(incoming[i]), (rank + ranks - 1) % ranks}));
  }
  for (std::size_t i = 0; i < messages; ++i)
    plans.push_back(all.plan(SendSpec{tensor(outgoing[i]), (rank + 1) % ranks}));
  for (int turn = 0; turn < 2; ++turn) {
    std::vector<Event> done;
    for (const auto& plan : plans) done.push_back(plan->start());
    for (const Event& event : done) event.wait();
    for (std::size_t i = 0; i < messages; ++i) CHECK(incoming[i] == std::vector<float>(300'000, static_cast<float>(i)));
    for (auto& values : incoming) std::ranges::fill(values, -1.0F);
  }
}

RANK_CASE("allreduces of overlapping groups are in flight across each other's barriers") {
  Communicator all = test::world().communicator();
  const int rank = all.rank(), ranks = all.size();
  if (ranks != 3) return;
  // Group g has the ranks g and g+1; rank r is of the groups r and r-1, and starts what the next group needs last.
  std::vector<Communicator> groups;
  for (int g = 0; g < ranks; ++g) groups.push_back(all.split(rank == g || rank == (g + 1) % ranks ? 0 : 1, rank));
  for (const auto algorithm :
       {AllreduceAlgorithm::ring, test::ranks_are_threads() ? AllreduceAlgorithm::doubling : AllreduceAlgorithm::mpi}) {
    Communicator& mine = groups[static_cast<std::size_t>(rank)];
    Communicator& before = groups[static_cast<std::size_t>((rank + ranks - 1) % ranks)];
    std::vector<float> first(1000, 1.0F), second(1000, 1.0F);
    // Plans are collective over their groups: all ranks make them in the groups' order.
    std::unique_ptr<Collective> of_mine, of_before;
    for (int g = 0; g < ranks; ++g) {
      if (g == rank) of_mine = mine.plan(AllreduceSpec{{tensor(first)}, ReduceOp::sum, algorithm, "test"});
      if (g == (rank + ranks - 1) % ranks)
        of_before = before.plan(AllreduceSpec{{tensor(second)}, ReduceOp::sum, algorithm, "test"});
    }
    const Event started = of_mine->start();  // whose other rank starts it after its barrier
    for (int g = 0; g < ranks; ++g)
      if (g == (rank + ranks - 1) % ranks || g == rank) groups[static_cast<std::size_t>(g)].barrier();
    const Event other = of_before->start();
    started.wait();
    other.wait();
    CHECK(first.back() == 2.0F);
    CHECK(second.back() == 2.0F);
  }
}

RANK_CASE("a rank waits for whichever of several messages comes first") {
  Communicator all = test::world().communicator();
  const int rank = all.rank(), ranks = all.size();
  if (ranks == 1) return;
  std::vector<float> number{static_cast<float>(rank)};
  if (rank > 0) {  // the last rank first, and each other one when it is told to
    std::vector<float> turn(1);
    if (rank + 1 < ranks) all.receive(tensor(turn), 0);
    all.send(tensor(number), 0);
    return;
  }
  std::vector<std::vector<float>> numbers(static_cast<std::size_t>(ranks), std::vector<float>(1));
  std::vector<std::unique_ptr<Collective>> receives;
  std::vector<Event> received;
  for (int from = 1; from < ranks; ++from) {
    receives.push_back(all.plan(ReceiveSpec{tensor(numbers[static_cast<std::size_t>(from)]), from}));
    received.push_back(receives.back()->start());
  }
  for (auto from = static_cast<std::size_t>(ranks - 1); from > 0; --from) {
    all.wait_until([&] {  // which would stand still if it waited for the first
      return std::any_of(received.begin(), received.begin() + static_cast<std::ptrdiff_t>(from),
                         [](const Event& event) { return event.ready(); });
    });
    CHECK(received[from - 1].ready());
    CHECK(numbers[from][0] == static_cast<float>(from));
    if (from > 1) all.send(tensor(number), static_cast<int>(from) - 1);
  }
}

}  // namespace
}  // namespace ronda::in_flight_test
