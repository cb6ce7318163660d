#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace ronda {

/// The tasks of a cluster, as TensorFlow writes them: `host:port` each, ordered by index.
struct ClusterTasks {
  std::vector<std::string> chiefs, workers, servers;
};

/// Reads a ClusterSpec, or a TF_CONFIG, which has a ClusterSpec as its "cluster":
///
///     {"cluster": {"worker": ["a:2222", "b:2222"], "ps": ["a:2223"]}, "task": {"type": "worker", "index": 0}}
///
/// Jobs are chief, worker and ps; "task" is ignored. Throws InputError with file and position, also for another job,
/// for a task that is not `host:port`, and for a duplicate task.
[[nodiscard]] ClusterTasks read_cluster(const std::filesystem::path& path);

/// The host of a task: `a` of `a:2222`, `fe80::1` of `[fe80::1]:2222`.
[[nodiscard]] std::string host_of_task(const std::string& task);

}  // namespace ronda
