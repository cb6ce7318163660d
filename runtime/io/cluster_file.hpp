#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace ronda {

/// The tasks of a cluster, as TensorFlow writes them: `host:port` each, in the order of their numbers.
struct ClusterTasks {
  std::vector<std::string> chiefs, workers, servers;
};

/// Reads a ClusterSpec, or a TF_CONFIG, which has one as its "cluster":
///
///     {"cluster": {"worker": ["a:2222", "b:2222"], "ps": ["a:2223"]}, "task": {"type": "worker", "index": 0}}
///
/// Jobs are chief, worker and ps; "task" is not looked at. Throws InputError that names the file and the place: also
/// for another job, for a task that is not `host:port`, and for one that stands there twice.
[[nodiscard]] ClusterTasks read_cluster(const std::filesystem::path& path);

/// Of a task: `a` of `a:2222`, `fe80::1` of `[fe80::1]:2222`.
[[nodiscard]] std::string host_of_task(const std::string& task);

}  // namespace ronda
