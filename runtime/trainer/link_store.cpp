#include <ronda/collectives/link_costs.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/hash.hpp>
#include <ronda/runtime/io/plan_file.hpp>
#include <ronda/runtime/io/whole_file.hpp>
#include <ronda/runtime/trainer/link_store.hpp>

#include <system_error>

namespace ronda {
namespace {

/// Not where the nodes had no room for shared memory: next time they may have.
bool are_whole(const LinkCosts& costs, const Topology& topology) {
  return topology.most_ranks_on_a_node == 1 || !costs.window.empty();
}

}  // namespace

LinkStore::LinkStore(Communicator communicator, Progress progress) : communicator_(std::move(communicator)) {
  const auto directory = communicator_.rank() != 0 ? std::nullopt : cache_directory();
  if (!directory) return;
  const Topology& topology = communicator_.topology();
  Hash hash;
  hash.add(name_of(progress));
  for (std::size_t rank = 0; rank < topology.hosts.size(); ++rank) hash.add(topology.hosts[rank]);
  for (const int number : {topology.nodes, topology.most_ranks_on_a_node, topology.fewest_ranks_on_a_node})
    hash.add(static_cast<std::uint64_t>(number));
  file_ = *directory / ("links-" + hash.text() + ".txt");
}

void LinkStore::load() {
  if (!file_.empty()) read();
  const std::string costs = communicator_.broadcast_text(known_);
  if (!costs.empty()) communicator_.use_link_costs(LinkCosts::parse(costs));
}

void LinkStore::read() {
  try {
    if (!is_there(file_)) return;
    const std::string text = read_text(file_);
    const std::string line = text.substr(0, text.find('\n'));
    if (are_whole(LinkCosts::parse(line), communicator_.topology())) known_ = line;
  } catch (const InputError& error) {
    damage_ = file_.string() + ": " + error.what();
  }
}

void LinkStore::keep() {
  if (file_.empty()) return;
  const LinkCosts* costs = communicator_.known_link_costs();
  if (costs == nullptr || !are_whole(*costs, communicator_.topology())) {
    std::error_code ignored;
    if (!damage_.empty()) std::filesystem::remove(file_, ignored);
    return;
  }
  const std::string text = costs->text();
  if (text == known_) return;
  try {
    write_text(file_, text + "\n");
    known_ = text;
  } catch (const Error&) {  // measured anew next time
  }
}

}  // namespace ronda
