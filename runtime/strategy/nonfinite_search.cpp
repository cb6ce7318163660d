#include <ronda/core/finite.hpp>
#include <ronda/core/number.hpp>
#include <ronda/runtime/strategy/nonfinite_search.hpp>
#include <ronda/runtime/strategy/shared_values.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

namespace ronda {
namespace {

void clear(Replica& replica, const Parameter& parameter, HostCopy& host) {
  const Tensor read = host.of(parameter.value);  // by layers
  const std::size_t bytes = read.desc().bytes();
  std::fill_n(read.data(), bytes, std::byte{0});
  if (read.data() != parameter.value.data())
    replica.device().context->copy(read.data(), parameter.value.data(), bytes, replica.stream());
}

/// The name of the first, in the order of backward; empty where there is none. All ranks of a replica have the same.
std::string clear_nonfinite_parameters(Replica& replica, Communicator communicator, HostCopy& host) {
  std::string first;
  std::vector<const Parameter*> spoiled;
  for (const auto& slot : replica.plan().slots) {
    const Parameter& parameter = replica.parameters()[index_of(slot.id)];
    const Tensor found = host.of(parameter.trained());
    if (all_finite(1, found.as<float>())) continue;
    if (first.empty()) first = slot.name;
    spoiled.push_back(&parameter);
  }
  write_once(replica, communicator, [&] {
    for (const Parameter* parameter : spoiled) clear(replica, *parameter, host);
  });
  return first;
}

/// `the loss and the gradient of dense1.weight`; empty where all is finite.
std::string nonfinite_here(Replica& replica, bool loss_is_finite, HostCopy& host) {
  std::string mine = loss_is_finite ? "" : "the loss";
  for (const auto& slot : replica.plan().slots) {  // in the order in which backward came to them
    const Tensor gradient = host.of(replica.parameters()[index_of(slot.id)].gradient);
    if (all_finite(1, floats_of(gradient))) continue;
    return mine + (mine.empty() ? "" : " and ") + "the gradient of " + slot.name;
  }
  return mine;
}

}  // namespace

std::string explain_nonfinite(Replica& replica, const Communicator& communicator, HostCopy& host,
                              FunctionRef<std::optional<double>()> compute) {
  const auto lost = communicator.gather_texts(clear_nonfinite_parameters(replica, communicator, host));
  // Backward comes to the last ranks' parts first.
  const auto first_lost = std::find_if(lost.rbegin(), lost.rend(), [](const auto& name) { return !name.empty(); });
  replica.clear_sparse_gradients();
  std::optional<double> loss;
  replica.with_states_kept([&] { loss = compute(); });
  const auto all = communicator.gather_texts(loss ? nonfinite_here(replica, std::isfinite(*loss), host) : "");
  std::string text;
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    if (!all[rank].empty())
      text += (text.empty() ? "" : "; ") + std::string("on rank ") + std::to_string(rank) + " on " +
              communicator.topology().hosts[rank] + " " + all[rank];
  if (text.empty())
    text = "each rank's own are finite: their sum or the update is not, or those of an earlier micro-batch were not";
  return first_lost == lost.rend() ? text : *first_lost + " after the update; " + text;
}

std::string explain_nonfinite(Replica& replica, const Communicator& communicator, const Batch* batch,
                              std::uint64_t step, ControlBlock& sums, HostCopy& host) {
  return explain_nonfinite(replica, communicator, host, [&]() -> std::optional<double> {
    if (batch == nullptr) return std::nullopt;
    StepClock clock;  // nobody asks for the times, and nobody hears of a gradient, so nothing is sent
    sums.clear();
    replica.compute(*batch, replica.pass(Mode::training, *batch, step, sums.there()), clock);
    return sums.read().loss;
  });
}

}  // namespace ronda
