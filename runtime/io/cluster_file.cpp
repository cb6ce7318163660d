#include <ronda/core/error.hpp>
#include <ronda/runtime/io/cluster_file.hpp>
#include <ronda/runtime/io/detail/json.hpp>
#include <ronda/runtime/io/whole_file.hpp>

#include <algorithm>
#include <set>

namespace ronda {
namespace {

/// Throws where it is none.
void check_task(const std::string& task, const std::string& job, const std::filesystem::path& path) {
  const std::size_t colon = task.rfind(':');
  const std::string port = colon == std::string::npos ? "" : task.substr(colon + 1);
  const bool numeric = !port.empty() && std::ranges::all_of(port, [](char c) { return c >= '0' && c <= '9'; });
  const std::string host = task.substr(0, colon == std::string::npos ? 0 : colon);
  const bool bare = host.find(':') == std::string::npos || (host.front() == '[' && host.back() == ']');  // IPv6: [::1]
  const int number = numeric && port.size() <= 5 ? std::stoi(port) : 0;
  if (number < 1 || number > 65535 || !bare || host_of_task(task).empty())
    throw InputError(path.string() + ": a task of job " + job + " is not host:port: " + shown(task));
}

std::vector<std::string> tasks_of(const JsonObject& cluster, std::string_view job, std::set<std::string>& seen,
                                  const std::filesystem::path& path) {
  std::vector<std::string> tasks;
  if (!cluster.has(job)) return tasks;
  cluster.get(job, tasks);
  for (const std::string& task : tasks) {
    check_task(task, std::string(job), path);
    if (!seen.insert(task).second) throw InputError(path.string() + ": the task " + task + " stands there twice");
  }
  return tasks;
}

}  // namespace

std::string host_of_task(const std::string& task) {
  std::string host = task.substr(0, task.rfind(':'));
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  return host;
}

ClusterTasks read_cluster(const std::filesystem::path& path) {
  const nlohmann::json json = parse_json(read_text(path), path);
  const JsonObject whole(json, path);
  const bool nested = whole.has("cluster");
  const nlohmann::json& jobs = nested ? json["cluster"] : json;
  const JsonObject cluster(jobs, path, nested ? "cluster" : "");
  for (const auto& [job, tasks] : jobs.items())
    if (job != "chief" && job != "worker" && job != "ps")
      throw InputError(path.string() + ": job " + shown(job) +
                       " has no place here: ranks are workers (worker, chief) or servers (ps)");
  std::set<std::string> seen;
  ClusterTasks tasks;
  tasks.chiefs = tasks_of(cluster, "chief", seen, path);
  tasks.workers = tasks_of(cluster, "worker", seen, path);
  tasks.servers = tasks_of(cluster, "ps", seen, path);
  return tasks;
}

}  // namespace ronda
