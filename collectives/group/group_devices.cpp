#include <ronda/collectives/group/group_devices.hpp>
#include <ronda/collectives/nccl/nccl_plan.hpp>
#include <ronda/core/error.hpp>

#include <cstdlib>
#include <map>
#include <utility>

namespace ronda {
namespace {

/// NCCL takes two ranks with the same GPU and the same of this for a mistake.
std::string place_of_gpu(const std::string& host, const std::string& identity) {
  const char* variable = std::getenv("NCCL_HOSTID");
  return (variable == nullptr ? host : std::string(variable)) + " " + identity;
}

}  // namespace

GroupDevices::GroupDevices(const Parts& group, std::shared_ptr<DeviceContext> context, AllreduceAlgorithm wanted,
                           const std::shared_ptr<nccl::Library>& library)
    : group_(group) {
  Members& members = *group_.members;
  const std::string mine = context->device().text() + ", " + context->name();
  group_.agreement.run([&] { lanes_ = std::make_shared<DeviceLanes>(std::move(context)); });
  if (members.size() > 1) connect(wanted, library);
  staged_ = std::make_unique<StagedBackend>(members, group_.links, group_.memory, group_.host, lanes_, refusal_);
  backend_ = staged_.get();
  if (clique_ != nullptr) {
    nccl_ = std::make_unique<nccl::NcclBackend>(group_.members, clique_, *staged_);
    backend_ = nccl_.get();
  }
  lines_ = group_.agreement.gather_texts(mine);
  const std::string how = members.size() == 1 ? "" : clique_ != nullptr ? ", by nccl" : ", staged";
  for (std::size_t rank = 0; rank < lines_.size(); ++rank)
    lines_[rank] = members.name_of_rank(rank) + ": " + lines_[rank] + how;
}

void GroupDevices::connect(AllreduceAlgorithm wanted, const std::shared_ptr<nccl::Library>& library) {
  Members& members = *group_.members;
  refusal_ = nccl_refusal(wanted, library);
  if (wanted == AllreduceAlgorithm::staged) return;
  if (!refusal_.empty()) {
    if (wanted == AllreduceAlgorithm::nccl)
      group_.agreement.alike([&] {
        throw InputError(setting("allreduce", "nccl") + ": " + refusal_ + "; take " + setting("allreduce", "staged") +
                         " or auto");
      });
    members.add_note(refusal_ + "; gradients go through the host's memory instead (" + setting("allreduce", "staged") +
                     ")");
    return;
  }
  Agreement& agreement = group_.agreement;
  nccl::Clique::Place place{.rank = members.rank(),
                            .names = {},
                            .gather = [&agreement](std::string_view text) { return agreement.gather_texts(text); },
                            .deadline = members.engine()->timeout(),
                            .ledger = &members.ledger(),
                            .watchdog = members.engine()->watchdog(),
                            .clock = members.engine()->clock()};
  for (std::size_t rank = 0; rank < members.topology().hosts.size(); ++rank)
    place.names.push_back(members.name_of_rank(rank));
  agreement.alike([&] { clique_ = std::make_shared<nccl::Clique>(library, lanes_, std::move(place)); });
}

/// Why NCCL cannot connect these ranks, the same on all; empty where it can.
Message GroupDevices::nccl_refusal(AllreduceAlgorithm wanted, const std::shared_ptr<nccl::Library>& library) {
  if (wanted == AllreduceAlgorithm::staged) return setting("allreduce", "staged") + " was asked for";
  Members& members = *group_.members;
  const auto& hosts = members.topology().hosts;
  const std::string& host = hosts[static_cast<std::size_t>(members.rank())];
  const auto versions = group_.agreement.gather_texts(library == nullptr ? std::string() : library->version());
  const auto places = group_.agreement.gather_texts(place_of_gpu(host, lanes_->context->identity()));
  std::map<std::string, std::size_t> first_on;
  for (std::size_t rank = 0; rank < versions.size(); ++rank) {
    if (versions[rank].empty()) return members.name_of_rank(rank) + " runs a program without NCCL";
    if (versions[rank] != versions[0])
      return members.name_of_rank(rank) + " has NCCL " + versions[rank] + ", " + members.name_of_rank(0) + " " +
             versions[0];
    const auto [other, alone] = first_on.emplace(places[rank], rank);
    if (!alone)
      return "ranks " + std::to_string(other->second) + " and " + std::to_string(rank) + " on " + hosts[rank] +
             " share a GPU, which NCCL refuses";
  }
  return {};
}

std::unique_ptr<Recording> GroupDevices::watched(std::unique_ptr<Recording> recording, const std::string& what) const {
  if (recording == nullptr || clique_ == nullptr) return recording;
  return nccl::watched(clique_, std::move(recording), what);
}

void GroupDevices::require_whole() const {
  if (clique_ != nullptr) clique_->require_whole();
}

Buffer GroupDevices::allocate(std::size_t bytes) {
  if (clique_ == nullptr || bytes == 0) return lanes_->context->allocate(bytes);
  Message note;
  Buffer buffer;
  group_.agreement.alike([&] { buffer = clique_->allocate(bytes, note); });
  if (!note.empty()) group_.members->add_note(note);
  return buffer;
}

}  // namespace ronda
