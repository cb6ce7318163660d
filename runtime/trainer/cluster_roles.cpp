#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>
#include <ronda/runtime/trainer/cluster_roles.hpp>
#include <ronda/runtime/trainer/host_addresses.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

namespace ronda {
namespace {

std::map<std::string, std::vector<int>, std::less<>> ranks_by_host(const HostNames& hosts) {
  std::map<std::string, std::vector<int>, std::less<>> ranks;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank)
    ranks[std::string(hosts[rank])].push_back(static_cast<int>(rank));
  return ranks;
}

/// `a` and `a.example.org`, but not two addresses of four numbers.
bool is_with_domain(std::string_view name, std::string_view longer) {
  return longer.size() > name.size() + 1 && longer.starts_with(name) && longer[name.size()] == '.' &&
         name.find_first_not_of("0123456789.") != std::string_view::npos;
}

bool is_host(const std::string& task, std::string_view host, bool alone) {
  return task == host || is_with_domain(task, host) || is_with_domain(host, task) ||
         (alone && (task == "localhost" || is_loopback(task)));
}

/// By host, what its ranks take for their machine.
std::map<std::string, std::set<std::string>> own_by_host(const HostNames& hosts, const std::vector<std::string>& own) {
  std::map<std::string, std::set<std::string>> names;
  for (std::size_t rank = 0; rank < own.size(); ++rank) {
    std::istringstream lines(own[rank]);
    for (std::string line; std::getline(lines, line);) names[std::string(hosts[rank])].insert(line);
  }
  return names;
}

/// Of one host.
struct HostTasks {
  std::vector<std::string> workers = {}, servers = {};
};

class Matching {
 public:
  Matching(const HostNames& hosts, const std::string& source, const std::vector<std::string>& own)
      : source_(source), ranks_(ranks_by_host(hosts)), own_(own_by_host(hosts, own)) {}

  /// @param name  of the task, for messages: `ps 1`
  void add(const std::string& task, const std::string& name, bool server) {
    const std::string& host = host_of(task, name);
    const std::size_t ranks = ranks_.find(host)->second.size();
    HostTasks& here = tasks_[host];
    (server ? here.servers : here.workers).push_back(name + " (" + task + ")");
    if (here.workers.size() + here.servers.size() > ranks)
      throw InputError(source_ + ": " + name + " (" + task + ") has no rank: host " + host + " has " +
                       counted(static_cast<std::int64_t>(ranks), "rank") + ", and more tasks");
  }
  [[nodiscard]] std::vector<int> server_ranks() {
    std::vector<int> servers;
    for (const auto& [host, ranks] : ranks_) {
      const HostTasks& here = tasks_[host];
      const std::size_t taken = here.workers.size() + here.servers.size();
      if (taken < ranks.size())
        throw InputError(source_ + ": rank " + std::to_string(ranks[taken]) + " on host " + host +
                         " has no task: the host has " + counted(static_cast<std::int64_t>(ranks.size()), "rank") +
                         " and " + counted(static_cast<std::int64_t>(taken), "task"));
      servers.insert(servers.end(), ranks.end() - static_cast<std::ptrdiff_t>(here.servers.size()), ranks.end());
    }
    return servers;
  }

 private:
  /// The host of that name; or else the only one that it may be by its name, takes it for itself, or has its address.
  [[nodiscard]] const std::string& host_of(const std::string& task, const std::string& name) {
    const std::string wanted = host_of_task(task);
    if (const auto known = ranks_.find(wanted); known != ranks_.end()) return known->first;
    const std::string* found = only_one(task, name, [&](const std::string& host) {
      return is_host(lower_case(wanted), lower_case(host), ranks_.size() == 1);
    });
    if (found == nullptr)
      found = only_one(task, name, [&](const std::string& host) { return takes_for_itself(host, wanted); });
    if (found == nullptr)
      found = only_one(task, name, [&](const std::string& host) { return addresses_.has(host, wanted); });
    if (found == nullptr) refuse(task, name, is_loopback(wanted));
    return *found;
  }

  [[nodiscard]] bool takes_for_itself(const std::string& host, const std::string& wanted) const {
    const auto names = own_.find(host);
    return names != own_.end() && names->second.contains(wanted);
  }

  [[noreturn]] void refuse(const std::string& task, const std::string& name, bool loopback) const {
    const std::string hosts = ranks_.begin()->first + (ranks_.size() > 1 ? " and others" : "");
    throw InputError(
        source_ + ": " + name + " (" + task + ") has no rank: " +
        (loopback ? "ranks are on " + hosts + ", and each of these has this loopback address"
                  : "no host with ranks, which are " + hosts + ", has this name or address, or takes it for itself") +
        "; give the name by which mpirun has the host");
  }

  /// Of the hosts with ranks; null: it is none of them.
  template <class IsIt>
  [[nodiscard]] const std::string* only_one(const std::string& task, const std::string& name, const IsIt& is_it) const {
    const std::string* found = nullptr;
    for (const auto& [host, ranks] : ranks_) {
      if (!is_it(host)) continue;
      if (found != nullptr)
        throw InputError(source_ + ": " + name + " (" + task + ") may be on host " + *found + " or on host " + host +
                         ": give the whole name of its host");
      found = &host;
    }
    return found;
  }

  std::string source_;
  std::map<std::string, std::vector<int>, std::less<>> ranks_;
  std::map<std::string, HostTasks, std::less<>> tasks_;
  std::map<std::string, std::set<std::string>> own_;  ///< by host
  HostAddresses addresses_;
};

void add_all(Matching& matching, const std::vector<std::string>& tasks, const std::string& job) {
  for (std::size_t i = 0; i < tasks.size(); ++i) matching.add(tasks[i], job + " " + std::to_string(i), job == "ps");
}

}  // namespace

Roles roles_beside(const HostNames& hosts) {
  std::vector<int> servers;
  for (const auto& [host, ranks] : ranks_by_host(hosts))
    servers.insert(servers.end(), ranks.end() - static_cast<std::ptrdiff_t>(ranks.size() / 2), ranks.end());
  if (servers.empty())
    throw InputError(setting("servers_beside") +
                     " makes half of each host's ranks servers, and no host has two ranks; start more, or take " +
                     setting("servers"));
  return Roles::of_servers(static_cast<int>(hosts.size()), std::move(servers));
}

Roles roles_of_tasks(const ClusterTasks& tasks, const HostNames& hosts, const std::string& source,
                     const std::vector<std::string>& own) {
  Matching matching(hosts, source, own);
  add_all(matching, tasks.chiefs, "chief");
  add_all(matching, tasks.workers, "worker");
  add_all(matching, tasks.servers, "ps");
  if (tasks.servers.empty()) throw InputError(source + ": no task is a server (ps)");
  if (tasks.chiefs.empty() && tasks.workers.empty()) throw InputError(source + ": no task is a worker");
  return Roles::of_servers(static_cast<int>(hosts.size()), matching.server_ranks());
}

std::string own_task_hosts(const TrainingOptions& options, const HostNames& hosts) {
  const auto* server = options.strategy.as<ParameterServer>();
  if (server == nullptr || server->cluster.empty()) return {};
  std::set<std::string> wanted;
  try {
    const ClusterTasks all = read_cluster(server->cluster);
    for (const auto* tasks : {&all.chiefs, &all.workers, &all.servers})
      for (const std::string& task : *tasks) wanted.insert(host_of_task(task));
  } catch (const Error&) {  // place_servers tells
  }
  std::string own;
  for (const std::string& host : wanted)
    if (std::ranges::find(hosts.names(), host) == hosts.names().end() && is_this_host(host)) own += host + "\n";
  return own;
}

void place_servers(TrainingOptions& options, const HostNames& hosts, const std::vector<std::string>& own) {
  auto* server = options.strategy.as<ParameterServer>();
  if (server == nullptr || (!server->servers_beside && server->cluster.empty())) return;
  const Roles roles = server->servers_beside
                          ? roles_beside(hosts)
                          : roles_of_tasks(read_cluster(server->cluster), hosts, server->cluster.string(), own);
  std::vector<int> servers;
  for (int i = 0; i < roles.servers(); ++i) servers.push_back(roles.rank_of_server(i));
  std::ranges::sort(server->server_ranks);
  if (!server->server_ranks.empty() && server->server_ranks != servers)
    throw InputError(setting("server_ranks") + " and " +
                     (server->servers_beside ? setting("servers_beside") : setting("cluster")) +
                     " both say which ranks are servers, and not the same; give one of them");
  server->server_ranks = std::move(servers);
}

}  // namespace ronda
