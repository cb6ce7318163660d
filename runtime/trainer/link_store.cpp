#include <ronda/collectives/link_costs.hpp>
#include <ronda/runtime/core/error.hpp>
#include <ronda/runtime/core/hash.hpp>
#include <ronda/runtime/files/plan_file.hpp>
#include <ronda/runtime/files/whole_file.hpp>
#include <ronda/runtime/trainer/link_store.hpp>

#include <fstream>

namespace ronda {
namespace {

/// Not where the nodes had no room for shared memory: next time they may have.
bool are_whole(const LinkCosts& costs, const Topology& topology) {
  return topology.most_ranks_on_a_node == 1 || !costs.window.empty();
}

/// Empty where they cannot be read, are not whole, or are no costs of this version's.
std::string read_costs(const std::filesystem::path& file, const Topology& topology) {
  std::string line;
  if (!std::getline(std::ifstream(file), line)) return {};
  try {
    return are_whole(LinkCosts::parse(line), topology) ? line : std::string();
  } catch (const InputError&) {
    return {};
  }
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
  if (!file_.empty()) known_ = read_costs(file_, communicator_.topology());
  const std::string costs = communicator_.broadcast_text(known_);
  if (!costs.empty()) communicator_.use_link_costs(LinkCosts::parse(costs));
}

void LinkStore::keep() {
  const LinkCosts* costs = communicator_.known_link_costs();
  if (file_.empty() || costs == nullptr || !are_whole(*costs, communicator_.topology())) return;
  const std::string text = costs->text();
  if (text == known_) return;
  try {
    write_text(file_, text + "\n");
    known_ = text;
  } catch (const Error&) {  // measured anew next time
  }
}

}  // namespace ronda
