#include <ronda/collectives/fabric/threads/thread_fabric.hpp>
#include <ronda/core/process.hpp>

#include <utility>

namespace ronda {

ThreadFabric::ThreadFabric(std::shared_ptr<ThreadNetwork> network, int rank, const Clock& clock)
    : network_(std::move(network)), clock_(clock) {
  roster_.self = rank;
  for (int other = 0; other < network_->end(0).size(); ++other) {
    roster_.hosts.add(host_name());
    roster_.neighbour.push_back(0);
  }
}

}  // namespace ronda
