#include <cstring>
#include <numeric>

#include "check.hpp"

namespace compatibility {
namespace {

using namespace ronda;

void once(Communicator all) {
  const int rank = all.rank(), size = all.size();
  std::vector<float> mine(3, static_cast<float>(rank + 1)), everybody(3 * static_cast<std::size_t>(size));
  const float sum = static_cast<float>(size * (size + 1)) / 2;
  const auto tensor = [](std::vector<float>& values) { return Tensor(std::span(values)); };
  all.allgather(tensor(mine), tensor(everybody));
  require(everybody.back() == static_cast<float>(size), "allgather");
  all.allreduce(tensor(mine));
  require(mine[2] == sum, "allreduce");
  all.allreduce(tensor(mine), ReduceOp::mean);
  require(mine[0] == sum, "a mean");
  mine.assign(3, static_cast<float>(rank));
  all.broadcast(tensor(mine), size - 1);
  require(mine[1] == static_cast<float>(size - 1), "broadcast");
  mine.assign(3, 1);
  all.reduce(tensor(mine), 0, ReduceOp::sum);
  require(rank > 0 || mine[0] == static_cast<float>(size), "reduce");
  everybody.assign(everybody.size(), 2);
  all.reduce_scatter(tensor(everybody), tensor(mine), ReduceOp::maximum);
  require(mine[0] == 2, "reduce_scatter");
  mine.assign(3, static_cast<float>(rank));
  all.gather(tensor(mine), tensor(everybody), 0);
  require(rank > 0 || everybody.back() == static_cast<float>(size - 1), "gather");
  all.scatter(tensor(everybody), tensor(mine), 0);
  require(mine[0] == static_cast<float>(rank), "scatter");
  std::vector<float> incoming(everybody.size());
  everybody.assign(everybody.size(), static_cast<float>(rank));
  all.alltoall(tensor(everybody), tensor(incoming));
  require(incoming.back() == static_cast<float>(size - 1), "alltoall");
  if (size > 1 && rank == 0) all.send(tensor(everybody), 1);
  if (rank == 1) {
    all.receive(tensor(incoming), 0);
    require(incoming[0] == 0, "send and receive");
  }
  all.barrier();
}

void planned(Communicator all) {
  const std::size_t bytes = 4000 * sizeof(float);
  const Buffer memory = all.allocate(bytes, Memory::node_shared);
  const std::span values(reinterpret_cast<float*>(memory.data()), bytes / sizeof(float));
  const auto sum = all.plan(AllreduceSpec{{Tensor(values)}, ReduceOp::sum});
  for (int step = 0; step < 3; ++step) {
    std::iota(values.begin(), values.end(), 0.0F);
    sum->start().wait();
    require(values[1000] == 1000 * static_cast<float>(all.size()), "a planned allreduce, again and again");
  }
}

}  // namespace

void collectives(World& world) {
  const Communicator all = world.communicator();
  once(all);
  planned(all);
  Communicator part = all.split(all.rank() % 2, all.rank());
  double one = 1;
  part.allreduce(Tensor(std::span(&one, 1)));
  require(one == part.size(), "a group of some ranks");
  require(all.gather_texts("rank " + std::to_string(all.rank())).back() == "rank " + std::to_string(all.size() - 1),
          "texts");
  require(all.topology().nodes >= 1 && all.topology().hosts.size() == static_cast<std::size_t>(all.size()),
          "a topology");
  try {
    agree(all, [&] {
      if (all.rank() == all.size() - 1) throw InputError("the last rank's");
    });
    require(false, "an error");
  } catch (const InputError& error) {
    require(error.agreed() && error.status() == ExitStatus::bad_input &&
                std::strstr(error.what(), "the last rank's") != nullptr,
            "an error of one rank that all throw");
  }
  require_equal(all, "a text", "the same");
}

}  // namespace compatibility
