#include <ronda/collectives/watch/side_channel.hpp>
#include <ronda/collectives/watch/watched.hpp>
#include <ronda/runtime/core/error.hpp>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>
#include <span>
#include <utility>

namespace ronda {
namespace {

namespace fs = std::filesystem;

fs::path wanted_folder(const WorldOptions& options) {
  const char* variable = std::getenv("RONDA_TRACE_DIR");
  return options.trace.empty() && variable != nullptr ? variable : options.trace;
}

/// A number that the ranks share, and nobody else has.
std::uint64_t agree_on_token(const mpi::Communicator& all) {
  std::random_device random;
  std::uint64_t token = (std::uint64_t{random()} << 32 | random()) | 1;
  all.broadcast(std::as_writable_bytes(std::span(&token, 1)), 0);
  return token;
}

}  // namespace

Watched Watched::begin(const Launcher& ranks, const WorldOptions& options, const std::string& apart) {
  Watched watched;
  const fs::path wanted = wanted_folder(options);
  if (wanted.empty() && (ranks.size == 1 || options.communication_timeout == 0)) return watched;
  watched.note = "no place for records";
  for (const auto& folder : wanted.empty() ? default_record_folders() : std::vector{wanted}) {
    try {
      if (wanted.empty()) remove_old_records(folder);
      watched.recorder = std::make_shared<Recorder>(folder, !wanted.empty(), ranks.rank, ranks.size, apart);
      break;
    } catch (const Error& error) {
      if (!wanted.empty()) watched.error = std::current_exception();
      watched.note = error.what();
    }
  }
  if (watched.recorder == nullptr) {
    watched.note += "; a rank that does not come will not be noticed";
    return watched;
  }
  watched.note.clear();
  watched.ledger.recorder = watched.recorder;
  const bool one_host = !ranks.several_hosts && apart.empty();
  if (ranks.size > 1 && options.communication_timeout > 0)
    watched.watchdog = std::make_shared<Watchdog>(
        watched.recorder, Watchdog::Options{options.communication_timeout, one_host, options.on_stall});
  return watched;
}

void Watched::introduce(const mpi::Communicator& all, const HostNames& hosts) const {
  const std::uint64_t token = agree_on_token(all);
  const std::vector<int> here = all.split_by_node().allgather(all.rank());
  std::unique_ptr<SideChannel> channel;
  std::string address;
  try {
    if (here.size() < hosts.size()) channel = std::make_unique<SideChannel>();
    if (channel != nullptr) address = channel->address();
  } catch (const ResourceError&) {  // then its silence tells
  }
  const auto addresses = all.allgather_texts(address);
  const auto lowest = all.allgather(here.front());
  if (channel != nullptr) {
    std::vector<SideChannel::Peer> peers;
    std::map<int, int> ranks_of_host;  // by its lowest rank; the first two may have to tell what happened
    for (int rank = 0; rank < all.size(); ++rank) {
      const auto index = static_cast<std::size_t>(rank);
      const bool may_tell = ranks_of_host[lowest[index]]++ < 2;
      if (lowest[index] != here.front()) peers.push_back({rank, addresses[index], may_tell});
    }
    channel->meet(all.rank(), token, peers);
  }
  const fs::path own = recorder == nullptr ? fs::path() : fs::absolute(recorder->path());
  const auto records = all.allgather_texts(own.string());
  std::map<int, fs::path> neighbours;
  for (const int rank : here) neighbours[rank] = records[static_cast<std::size_t>(rank)];
  all.barrier();
  if (recorder != nullptr) recorder->met(all.rank(), all.size(), token);
  if (watchdog != nullptr) watchdog->meet(hosts, neighbours, std::move(channel));
}

}  // namespace ronda
