#include <ronda/core/floats.hpp>
#include <ronda/core/number.hpp>
#include <ronda/runtime/strategy/step/nonfinite_search.hpp>
#include <ronda/runtime/strategy/replica/shared_values.hpp>

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

/// Looks at each gradient when backward has finished it: it may be gone later (ShardedGradients).
class SpoiledGradients {
 public:
  SpoiledGradients(const Replica& replica, HostCopy& host)
      : replica_(replica), host_(host), spoiled_(replica.parameters().size()) {}

  void mark_ready(ParameterId id, Stream& /*stream*/) {
    const Tensor gradient = host_.of(replica_.parameters()[index_of(id)].gradient);
    spoiled_[index_of(id)] = !all_finite(1, floats_of(gradient));
  }
  /// The name of the first, in the order of the arena; empty where all are finite.
  [[nodiscard]] std::string first() const {
    for (const auto& slot : replica_.plan().slots)
      if (spoiled_[index_of(slot.id)]) return slot.name;
    return {};
  }

 private:
  const Replica& replica_;
  HostCopy& host_;
  std::vector<bool> spoiled_;  ///< by ParameterId
};

/// `the loss and the gradient of dense1.weight`; empty where all is finite.
std::string nonfinite_here(bool loss_is_finite, const std::string& gradient) {
  std::string mine = loss_is_finite ? "" : "the loss";
  if (!gradient.empty()) mine += (mine.empty() ? "" : " and ") + ("the gradient of " + gradient);
  return mine;
}

}  // namespace

std::string explain_nonfinite(Replica& replica, const Communicator& communicator, HostCopy& host,
                              FunctionRef<std::optional<double>(const OnReady&)> compute) {
  const auto lost = communicator.gather_texts(clear_nonfinite_parameters(replica, communicator, host));
  // Backward comes to the last ranks' parts first.
  const auto first_lost = std::find_if(lost.rbegin(), lost.rend(), [](const auto& name) { return !name.empty(); });
  replica.clear_sparse_gradients();
  SpoiledGradients gradients(replica, host);
  std::optional<double> loss;
  replica.with_states_kept([&] { loss = compute(OnReady(gradients)); });
  const auto all =
      communicator.gather_texts(loss ? nonfinite_here(std::isfinite(*loss), gradients.first()) : std::string());
  std::string text;
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    if (!all[rank].empty())
      text += (text.empty() ? "" : "; ") + std::string("on rank ") + std::to_string(rank) + " on " +
              communicator.topology().hosts[rank] + " " + all[rank];
  if (text.empty())
    text = "each rank's own are finite: their sum or the update is not, or those of an earlier micro-batch were not";
  return first_lost == lost.rend() ? text : *first_lost + " after the update; " + text;
}

}  // namespace ronda
