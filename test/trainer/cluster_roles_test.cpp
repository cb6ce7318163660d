// Roles by hosts, and by a file of tasks as TensorFlow has it.
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/runtime/io/cluster_file.hpp>
#include <ronda/runtime/trainer/cluster_roles.hpp>
#include <ronda/runtime/trainer/host_addresses.hpp>

#include "support/catch.hpp"
#include "support/message.hpp"
#include "support/temporary_folder.hpp"

using namespace ronda;
using namespace ronda::test;

namespace cluster_roles_test {
namespace {

const HostNames cluster_hosts{"a", "b", "a", "b", "a"};

ClusterTasks tasks_in(const std::string& text) {
  const TemporaryFolder folder;
  const auto path = folder / "cluster.json";
  write_file(path, text);
  return read_cluster(path);
}

std::string refusal_of_tasks(const std::string& text, const HostNames& hosts = cluster_hosts) {
  return message_of<InputError>([&] { static_cast<void>(roles_of_tasks(tasks_in(text), hosts, "cluster.json")); });
}

constexpr const char* cluster_text =
    R"({"cluster": {"chief": ["a:2220"], "worker": ["b.example.org:2222", "a:2222"], "ps": ["a:2223", "b:2223"]},
        "task": {"type": "worker", "index": 0}, "environment": "cloud"})";

}  // namespace

TEST_CASE("a host's last ranks are the servers that its tasks ask for") {
  const ClusterTasks tasks = tasks_in(cluster_text);
  CHECK(tasks.chiefs == std::vector<std::string>{"a:2220"});
  CHECK(tasks.workers.size() == 2);
  CHECK(roles_of_tasks(tasks, cluster_hosts, "cluster.json") == Roles::of_servers(5, {3, 4}));
  const std::string plain = R"({"ps": ["a:1", "a:2"], "worker": ["b:1", "b:2", "a:3"]})";  // a ClusterSpec by itself
  CHECK(roles_of_tasks(tasks_in(plain), cluster_hosts, "cluster.json") == Roles::of_servers(5, {2, 4}));
  const std::string shouted = R"({"ps": ["A:1", "a.Example.org:2"], "worker": ["B:1", "b:2", "A:3"]})";
  CHECK(roles_of_tasks(tasks_in(shouted), cluster_hosts, "cluster.json") == Roles::of_servers(5, {2, 4}));
  const std::string local = R"({"worker": ["localhost:1", "127.0.0.1:2"], "ps": ["[::1]:3"]})";
  CHECK(roles_of_tasks(tasks_in(local), {"n1", "n1", "n1"}, "cluster.json") == Roles::of_servers(3, {2}));
}

TEST_CASE("a task with an address is on the host that has it") {
  const HostNames hosts{"fd00::a1", "fd00::a2", "fd00::a2"};
  const std::string text = R"({"worker": ["[fd00:0::a2]:1", "[fd00:0::a1]:1"], "ps": ["[fd00:0::a2]:2"]})";
  CHECK(roles_of_tasks(tasks_in(text), hosts, "cluster.json") == Roles::of_servers(3, {2}));
  require_mentions(refusal_of_tasks(R"({"worker": ["[fd00:0::a3]:1"], "ps": ["[fd00::a1]:1"]})", hosts),
                   {"worker 0 ([fd00:0::a3]:1)", "no rank"});
}

TEST_CASE("a loopback address is no host's among several") {
  const HostNames one{"n1", "n1"};
  const std::string text = R"({"worker": ["127.0.1.1:1"], "ps": ["[::1]:2"]})";
  CHECK(roles_of_tasks(tasks_in(text), one, "cluster.json") == Roles::of_servers(2, {1}));
  for (const std::string loopback : {"127.0.0.1", "127.0.1.1", "[::1]", "[::ffff:127.0.0.1]"})
    require_mentions(
        refusal_of_tasks(R"({"worker": [")" + loopback + R"(:1"], "ps": ["[fd00::a1]:1"]})", {"localhost", "fd00::a1"}),
        {"worker 0 (" + loopback + ":1)", "no rank", "loopback", "give the name"});
}

TEST_CASE("a machine takes the addresses of its interfaces for its own, and names that it finds these for") {
  CHECK(is_this_host("localhost"));
  for (const char* other : {"127.0.0.1", "127.0.1.1", "::1", "192.0.2.1", "no address"})
    CHECK_FALSE(is_this_host(other));
  ifaddrs* first = nullptr;
  REQUIRE(getifaddrs(&first) == 0);
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> interfaces(first, freeifaddrs);
  HostAddresses addresses;
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    const std::string address = inet_ntoa(reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr);
    INFO(address);
    CHECK(is_this_host(address) == !address.starts_with("127."));
    CHECK_FALSE(addresses.has("fd00::a1", address));
  }
}

TEST_CASE("a name or an address that its host alone knows is that host's") {
  const TemporaryFolder folder;
  TrainingOptions options;
  const auto file = folder / "cluster.json";
  write_file(file, R"({"worker": ["localhost:1"], "ps": ["192.0.2.1:2", "127.0.0.1:3"]})");
  CHECK(own_task_hosts(options, {"a", "b"}).empty());  // of another strategy
  options.strategy = ParameterServer{.cluster = file};
  CHECK(own_task_hosts(options, {"a", "b"}) == "localhost\n");
  CHECK(own_task_hosts(options, {"localhost", "b"}).empty());  // whose ranks are known by that name
  options.strategy = ParameterServer{.cluster = folder / "none.json"};
  CHECK(own_task_hosts(options, {"a", "b"}).empty());

  const ClusterTasks tasks = tasks_in(R"({"worker": ["front:1", "b:1"], "ps": ["10.9.9.9:2"]})");
  const HostNames hosts{"a", "b", "a"};
  const std::vector<std::string> known{"front\n", "10.9.9.9\n", "front\n"}, by_both{"front\n", "front\n", "front\n"};
  const ClusterTasks more = tasks_in(R"({"worker": ["front:1", "front:3"], "ps": ["10.9.9.9:2"]})");
  CHECK(roles_of_tasks(more, hosts, "cluster.json", known) == Roles::of_servers(3, {1}));
  const auto refused = [&](const std::vector<std::string>& own) {
    return message_of<InputError>([&] { static_cast<void>(roles_of_tasks(tasks, hosts, "cluster.json", own)); });
  };
  require_mentions(refused(by_both), {"worker 0 (front:1)", "may be on host a or on host b"});
  require_mentions(refused({}), {"worker 0 (front:1)", "no rank", "takes it for itself", "a and others"});
}

TEST_CASE("a task without a rank is named, and a rank without a task") {
  require_mentions(refusal_of_tasks(R"({"worker": ["a:1", "a:2"], "ps": ["c:3"]})"),
                   {"cluster.json", "ps 0 (c:3)", "no rank"});
  require_mentions(refusal_of_tasks(R"({"worker": ["a:1", "a:2", "b:1", "b:2", "b:4"], "ps": ["a:3"]})"),
                   {"worker 4 (b:4)", "host b has 2 ranks"});
  require_mentions(refusal_of_tasks(R"({"worker": ["a:1", "b:1", "b:2"], "ps": ["a:3"]})"),
                   {"rank 4 on host a has no task", "3 ranks", "2 tasks"});
  require_mentions(refusal_of_tasks(R"({"worker": ["a:1"]})", {"a"}), {"no task is a server"});
  require_mentions(refusal_of_tasks(R"({"ps": ["a:1"]})", {"a"}), {"no task is a worker"});
  require_mentions(refusal_of_tasks(R"({"worker": ["localhost:1"], "ps": ["b:1"]})", {"a", "b"}),
                   {"worker 0 (localhost:1)"});
  require_mentions(refusal_of_tasks(R"({"worker": ["10.0.0:1"], "ps": ["b:1"]})", {"10.0.0.1", "b"}),
                   {"worker 0 (10.0.0:1)"});
}

TEST_CASE("a damaged file of tasks is refused with its place") {
  const auto refused = [](const std::string& text) {
    return message_of<InputError>([&] { static_cast<void>(tasks_in(text)); });
  };
  require_mentions(refused("{"), {"cluster.json", "JSON"});
  require_mentions(refused("[]"), {"cluster.json", "an object"});
  require_mentions(refused(R"({"cluster": 3})"), {"cluster", "an object"});
  require_mentions(refused(R"({"evaluator": ["a:1"]})"), {"evaluator", "ps"});
  require_mentions(refused(R"({"worker": "a:1"})"), {"worker", "a list"});
  require_mentions(refused(R"({"worker": [1]})"), {"worker", "a text"});
  for (const char* task : {"a", "a:", ":1", "a:x", "a:123456"})
    require_mentions(refused(R"({"worker": [")" + std::string(task) + R"("]})"), {"worker", "host:port"});
  require_mentions(refused(R"({"worker": ["a:1"], "ps": ["a:1"]})"), {"a:1", "twice"});
  require_mentions(message_of<InputError>([] { static_cast<void>(read_cluster("/no/such/file")); }), {"/no/such/file"});
}

TEST_CASE("beside workers, half of each host's ranks are servers") {
  CHECK(roles_beside(cluster_hosts) == Roles::of_servers(5, {3, 4}));
  CHECK(roles_beside({"a", "a", "a", "a", "b"}) == Roles::of_servers(5, {2, 3}));
  require_mentions(message_of<InputError>([] {
                     static_cast<void>(roles_beside({"a", "b"}));
                   }),
                   {".servers_beside", "no host has two ranks"});
  TrainingOptions options;
  place_servers(options, cluster_hosts);
  CHECK(options.strategy.as<Mirrored>() != nullptr);  // has no servers to place
  options.strategy = ParameterServer{.servers_beside = true};
  auto& server = *options.strategy.as<ParameterServer>();
  place_servers(options, cluster_hosts);
  CHECK(server.server_ranks == std::vector<int>{3, 4});
  CHECK(servers_of(options) == 2);
  server.server_ranks = {4, 3};
  place_servers(options, cluster_hosts);
  CHECK(server.server_ranks == std::vector<int>{3, 4});
  server.server_ranks = {0};
  require_mentions(message_of<InputError>([&] { place_servers(options, cluster_hosts); }),
                   {".server_ranks", ".servers_beside"});
  server.cluster = "some.json";
  require_mentions(message_of<InputError>([&] { check(options); }), {".servers_beside", ".cluster"});
  server.cluster.clear();
  server.servers = 2;
  require_mentions(message_of<InputError>([&] { check(options); }), {".servers ", ".servers_beside"});
}

}  // namespace cluster_roles_test
