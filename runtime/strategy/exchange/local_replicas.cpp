#include <ronda/core/error.hpp>
#include <ronda/runtime/strategy/exchange/local_replicas.hpp>

#include <cstddef>
#include <span>

namespace ronda {

void require_local_steps(const Replica& replica, std::string_view strategy) {
  const auto refuse = [&](const std::string& why, const Message& remedy) {
    throw InputError(why + ", which " + setting("strategy", strategy) + " has not; take " +
                     setting("strategy", "mirrored") + remedy);
  };
  const ReplicaPlan& plan = replica.plan();
  if (replica.device().context->device().kind != DeviceKind::cpu)
    refuse("a GPU needs an exchange that goes on without the host", ", or " + setting("device", "cpu"));
  if (!plan.tables().empty())
    refuse("the sparse gradient of " + plan.tables().front().name + " needs an exchange of rows in each step",
           ", or an embedding with " + setting("sparse", "false"));
  if (plan.mixed())
    refuse("layers of " + std::string(name_of(plan.dtype)) + " need their parameters rounded after each exchange",
           ", or " + setting("precision", "float32"));
  if (!replica.keeps_all_states())
    throw InputError("a rank that makes steps of its own needs all states: give " + setting(strategy) + " or " +
                     setting("divide_states") + ", not both");
  if (!replica.program().rank_sums().empty())
    refuse("a SyncBatchNorm needs sums over the ranks in each step", ", or a BatchNorm");
}

std::string explain_own_steps(const Communicator& communicator, const OwnSteps& sent) {
  std::string mine;
  if (sent.bad_steps > 0)
    mine = std::to_string(sent.bad_steps) + " of its steps, the first of them step " + std::to_string(sent.first_bad) +
           ", " +
           (sent.spoiled ? "left parameters that are not finite"
                         : "had a loss or a gradient that is not finite, and changed nothing");
  const auto all = communicator.gather_texts(mine);
  std::string text;
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    if (!all[rank].empty())
      text += (text.empty() ? "since the last synchronisation, on rank " : "; on rank ") + std::to_string(rank) +
              " on " + communicator.topology().hosts[rank] + ", " + all[rank];
  return text;
}

void take_mean_of_average(Communicator& communicator, const Replica& replica) {
  const ArenaRange arena = replica.dense_arena();
  const std::span average(reinterpret_cast<float*>(replica.average().data()), arena.count);
  for (std::size_t i = 0; i < average.size(); ++i) average[i] -= arena.values[i];
  communicator.allreduce(Tensor(average), ReduceOp::mean);
  for (std::size_t i = 0; i < average.size(); ++i) average[i] += arena.values[i];
}

}  // namespace ronda
