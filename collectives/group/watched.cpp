#include <ronda/collectives/group/watched.hpp>
#include <ronda/collectives/watch/side_channel.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/process.hpp>

#include <unistd.h>

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

/// What the ranks of a job share.
struct Shared {
  std::uint64_t job = 0;  ///< a number that no other job has; everybody may see it
  bool has_key = false;
  SipKey key;  ///< nobody else may
};

Shared agree_on_shared(Assembly& all) {
  Shared shared;
  if (all.rank() == 0) {
    const auto number = SipKey::random(), key = SipKey::random();
    shared.job = (number ? number->words[0] : std::uint64_t{std::random_device()()}) | 1;
    shared.has_key = key.has_value();
    if (key) shared.key = *key;
  }
  all.broadcast(std::as_writable_bytes(std::span(&shared, 1)), 0);
  return shared;
}

}  // namespace

std::string name_apart() { return std::to_string(::getpid()) + "-" + std::to_string(std::random_device()()); }

Watched Watched::begin(const Launcher& ranks, const WorldOptions& options, const std::string& apart,
                       const Clock& clock) {
  Watched watched;
  const fs::path wanted = wanted_folder(options);
  if (wanted.empty() && (ranks.size == 1 || options.communication_timeout == 0)) return watched;
  watched.note = "no place for records";
  for (const auto& place : wanted.empty() ? record_places() : std::vector{wanted}) {
    try {
      const auto folder = wanted.empty() ? record_folder_in(place) : wanted;
      if (!folder) continue;
      if (wanted.empty()) remove_old_records(*folder);
      watched.recorder = std::make_shared<Recorder>(*folder, !wanted.empty(), ranks.rank, ranks.size, apart, clock);
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
  if (ranks.size > 1 && options.communication_timeout > 0) {
    watched.watchdog = std::make_shared<Watchdog>(
        watched.recorder, Watchdog::Options{options.communication_timeout, one_host, options.on_stall,
                                            apart.empty() && is_launcher(::getppid()) ? ranks.on_host : 0});
    watched.thread = std::make_unique<WatchdogThread>(watched.watchdog);
  }
  return watched;
}

void Watched::introduce(Assembly& all, Assembly& host) const {
  const Shared shared = agree_on_shared(all);
  const HostNames& hosts = all.engine()->fabric().roster().hosts;
  const std::vector<int>& here = *host.ranks();
  std::unique_ptr<SideChannel> channel;
  std::string address;
  try {
    if (here.size() < hosts.size() && shared.has_key) channel = std::make_unique<SideChannel>();
    if (channel != nullptr) address = channel->address();
  } catch (const ResourceError&) {  // then its silence tells
  }
  const auto addresses = all.gather_texts(address);
  std::vector<int> lowest_of_host = all.engine()->fabric().roster().neighbour;
  if (channel != nullptr) channel->meet(all.rank(), shared.key, std::move(lowest_of_host), addresses);
  const fs::path own = recorder == nullptr ? fs::path() : fs::absolute(recorder->path());
  const auto records = host.gather_texts(own.string());
  std::map<int, std::string> neighbours;
  for (std::size_t i = 0; i < here.size(); ++i) neighbours[here[i]] = records[i];
  all.barrier();
  if (recorder != nullptr) recorder->met(all.rank(), all.size(), shared.job);
  if (watchdog != nullptr) watchdog->meet(hosts, neighbours, std::move(channel));
}

}  // namespace ronda
