#include <ronda/core/counted.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/lower_case.hpp>
#include <ronda/runtime/trainer/cluster_roles.hpp>
#include <ronda/runtime/trainer/host_addresses.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
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

bool is_host(std::string_view task, std::string_view host, bool alone) {
  const bool local = task == "localhost" || task == "127.0.0.1" || task == "::1";
  return task == host || is_with_domain(task, host) || is_with_domain(host, task) || (alone && local);
}

/// Of one host.
struct HostTasks {
  std::vector<std::string> workers = {}, servers = {};
};

class Matching {
 public:
  Matching(const HostNames& hosts, const std::string& source) : source_(source), ranks_(ranks_by_host(hosts)) {}

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
  /// The host of that name; or else the only one that it may be by its name, or by its address.
  [[nodiscard]] const std::string& host_of(const std::string& task, const std::string& name) {
    const std::string wanted = host_of_task(task);
    if (const auto known = ranks_.find(wanted); known != ranks_.end()) return known->first;
    const std::string* found = only_one(task, name, [&](const std::string& host) {
      return is_host(lower_case(wanted), lower_case(host), ranks_.size() == 1);
    });
    if (found == nullptr)
      found = only_one(task, name, [&](const std::string& host) { return addresses_.has(host, wanted); });
    if (found == nullptr)
      throw InputError(source_ + ": " + name + " (" + task + ") has no rank: none is on its host; ranks are on " +
                       ranks_.begin()->first + (ranks_.size() > 1 ? " and others" : ""));
    return *found;
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
    throw InputError(
        ".servers_beside makes half of each host's ranks servers, and no host has two ranks; start more, or "
        "take .servers");
  return Roles::of_servers(static_cast<int>(hosts.size()), std::move(servers));
}

Roles roles_of_tasks(const ClusterTasks& tasks, const HostNames& hosts, const std::string& source) {
  Matching matching(hosts, source);
  add_all(matching, tasks.chiefs, "chief");
  add_all(matching, tasks.workers, "worker");
  add_all(matching, tasks.servers, "ps");
  if (tasks.servers.empty()) throw InputError(source + ": no task is a server (ps)");
  if (tasks.chiefs.empty() && tasks.workers.empty()) throw InputError(source + ": no task is a worker");
  return Roles::of_servers(static_cast<int>(hosts.size()), matching.server_ranks());
}

void place_servers(TrainingOptions& options, const HostNames& hosts) {
  if (options.strategy != "parameter_server" || (!options.servers_beside && options.cluster.empty())) return;
  const Roles roles = options.servers_beside
                          ? roles_beside(hosts)
                          : roles_of_tasks(read_cluster(options.cluster), hosts, options.cluster.string());
  std::vector<int> servers;
  for (int i = 0; i < roles.servers(); ++i) servers.push_back(roles.rank_of_server(i));
  std::ranges::sort(options.server_ranks);
  if (!options.server_ranks.empty() && options.server_ranks != servers)
    throw InputError(std::string(".server_ranks and ") + (options.servers_beside ? ".servers_beside" : ".cluster") +
                     " both say which ranks are servers, and not the same; give one of them");
  options.server_ranks = std::move(servers);
}

}  // namespace ronda
