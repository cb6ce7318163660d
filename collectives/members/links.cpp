#include <ronda/collectives/members/links.hpp>
#include <ronda/core/message.hpp>

#include <string>
#include <utility>

namespace ronda {

Links::Links(std::shared_ptr<Members> members, Agreement& agreement)
    : members_(std::move(members)), agreement_(agreement) {
  PairChannels channels;
  for (FabricChannel& channel : channels) channel = members_->channels().take();
  pair_channels_ = std::make_shared<const PairChannels>(std::move(channels));
}

std::unique_ptr<Transport> Links::across_all() {
  return members_->fabric().open(members_->all().ranks(), next_channel());
}

std::unique_ptr<Transport> Links::across_nodes() {
  FabricChannel channel = next_channel();  // on all ranks, so that they take the same afterwards
  const Topology& topology = members_->topology();
  if (topology.rank_on_node >= topology.fewest_ranks_on_a_node) return nullptr;
  return between(owners_of_slice(topology.rank_on_node), std::move(channel));
}

std::unique_ptr<Transport> Links::across(const std::vector<int>& ranks) { return between(ranks, next_channel()); }

std::unique_ptr<FabricTransport> Links::between_two() const {
  return members_->fabric().open(members_->all().ranks(), pair_channels_->front());
}

std::unique_ptr<Transport> Links::between(const std::vector<int>& ranks, FabricChannel channel) const {
  return members_->fabric().open(members_->world_ranks(ranks), std::move(channel));
}

std::vector<int> Links::owners_of_slice(int slice) const {
  std::vector<int> owners;
  if (slice >= members_->topology().fewest_ranks_on_a_node) return owners;
  for (const auto& ranks : members_->ranks_of_node()) owners.push_back(ranks[static_cast<std::size_t>(slice)]);
  return owners;
}

FabricAllreduces& Links::fabric_allreduces() {
  auto& own = members_->fabric_allreduces();
  if (own == nullptr)
    own = agreement_.together("asking the fabric for its allreduce", [&] {
      Assembly& all = members_->all();
      all.barrier();
      return members_->fabric().own_allreduces(all.ranks(), [&](bool mine) { return all.all(mine); });
    });
  if (own == nullptr)
    throw InputError(setting("allreduce", "mpi") + ": this world is over " + std::string(members_->fabric().name()) +
                     ", not MPI");
  return *own;
}

std::unique_ptr<PlannedCollective> Links::planned(std::vector<std::unique_ptr<Algorithm>> algorithms,
                                                  std::string_view name, Description description,
                                                  Compression compression) const {
  description.run.algorithm = name;
  return std::make_unique<PlannedCollective>(members_->engine(), std::move(algorithms), name, description,
                                             members_->ledger(), members_, compression);
}

std::unique_ptr<PlannedCollective> Links::planned(std::unique_ptr<Algorithm> algorithm, std::string_view name,
                                                  Description description) const {
  std::vector<std::unique_ptr<Algorithm>> algorithms;
  algorithms.push_back(std::move(algorithm));
  return planned(std::move(algorithms), name, std::move(description));
}

std::unique_ptr<Collective> Links::made_on_all(const std::string& label,
                                               const std::function<std::unique_ptr<Collective>()>& make) {
  std::unique_ptr<Collective> made;
  try {
    agreement_.require_same("having planned " + label, [&] {
      made = make();
      return std::string();
    });
  } catch (const CommunicationError&) {
    throw;
  } catch (...) {
    made.reset();
    renew_channels();
    throw;
  }
  return made;
}

void Links::renew_channels() {
  agreement_.together("finding free channels", [&] { members_->channels().renew(members_->all()); });
}

FabricChannel Links::next_channel() {
  if (members_->channels().empty()) renew_channels();
  return members_->channels().take();
}

}  // namespace ronda
