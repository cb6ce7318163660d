#include <ronda/collectives/members/links.hpp>

#include <utility>

namespace ronda {

Links::Links(std::shared_ptr<Members> members, Agreement& agreement)
    : members_(std::move(members)), agreement_(agreement), everybody_(MpiTransport::up_to(members_->size())) {}

std::unique_ptr<MpiTransport> Links::transport(MpiTransport::Members ranks, Tag tag) const {
  return std::make_unique<MpiTransport>(members_->all().handle(), members_->rank(), std::move(ranks), std::move(tag));
}

std::unique_ptr<Transport> Links::across_all() { return transport(everybody_, next_tag()); }

std::unique_ptr<Transport> Links::across_nodes() {
  Tag tag = next_tag();  // on all ranks, so that they go on alike
  const Topology& topology = members_->topology();
  if (topology.rank_on_node >= topology.fewest_ranks_on_a_node) return nullptr;
  return transport(std::make_shared<const std::vector<int>>(owners_of_slice(topology.rank_on_node)), std::move(tag));
}

std::unique_ptr<MpiTransport> Links::across(std::vector<int> ranks) {
  Tag tag = next_tag();
  return transport(std::make_shared<const std::vector<int>>(std::move(ranks)), std::move(tag));
}

std::unique_ptr<MpiTransport> Links::between_two() const { return transport(everybody_, Tag(0)); }

std::vector<int> Links::owners_of_slice(int slice) const {
  std::vector<int> owners;
  if (slice >= members_->topology().fewest_ranks_on_a_node) return owners;
  for (const auto& ranks : members_->ranks_of_node()) owners.push_back(ranks[static_cast<std::size_t>(slice)]);
  return owners;
}

const mpi::Communicator& Links::plain_mpi() {
  mpi::Communicator& plain = members_->for_plain_mpi();
  if (plain.size() == 0)
    plain = agreement_.together_in_mpi("asking MPI for a communicator",
                                       [&] { return mpi::Communicator::duplicate(members_->all().handle()); });
  return plain;
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
    renew_tags();
    throw;
  }
  return made;
}

/// Tags that no rank uses are free again.
void Links::renew_tags() {
  TagPool::InUse in_use = tags_->in_use();
  agreement_.together_in_mpi("finding free tags",
                             [&] { members_->all().combine_bits(std::as_writable_bytes(std::span(&in_use, 1))); });
  tags_->renew(in_use);
}

Tag Links::next_tag() {
  auto tag = tags_->take();
  if (!tag) {
    renew_tags();
    tag = tags_->take();
  }
  if (!tag) throw ResourceError("a group of ranks has as many planned collectives as MPI has tags; destroy some first");
  return {*tag, tags_};
}

}  // namespace ronda
