// Lists of hosts, whose names become words of commands; and the signals that a supervisor heeds.
#include <ronda/core/error.hpp>
#include <ronda/core/random.hpp>
#include <ronda/runtime/supervise/child_process.hpp>
#include <ronda/runtime/supervise/hosts.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "support/catch.hpp"
#include "support/message.hpp"
#include "support/seed.hpp"
#include "support/temporary_folder.hpp"

using namespace ronda;
using namespace ronda::test;

TEST_CASE("hosts are read as they are written") {
  CHECK(parse_hosts("a:2,b") == std::vector<Host>{{"a", 2}, {"b", 1}});
  CHECK(parse_hosts("[fe80::1]:4,[::1],10.0.0.1") == std::vector<Host>{{"fe80::1", 4}, {"::1", 1}, {"10.0.0.1", 1}});
  CHECK(list_of(parse_hosts("[fe80::1]:4,node-1.rack_2:3")) == "[fe80::1]:4,node-1.rack_2:3");
  const TemporaryFolder folder;
  write_file(folder / "hosts", "# all\nnode1 slots=4\n\nfe80::1 slots=2 max_slots=3 # one\n[::1]\n");
  CHECK(read_hostfile(folder / "hosts") == std::vector<Host>{{"node1", 4}, {"fe80::1", 2}, {"::1", 1}});
  CHECK(parse_tasks_per_node("2(x3),1") == std::vector<int>{2, 2, 2, 1});
}

TEST_CASE("hostfiles are read as mpirun reads them") {
  const TemporaryFolder folder;
  const auto read = [&](const std::string& text) {
    write_file(folder / "hosts", text);
    return read_hostfile(folder / "hosts");
  };
  CHECK(read("a\na\nb\na\n") == std::vector<Host>{{"a", 3}, {"b", 1}});  // a line per slot
  CHECK(read("a slots=2\na\n") == std::vector<Host>{{"a", 3}});
  for (const char* line :
       {"slots = 2", "slots= 2", "slots =2", "slots\t=\t2", "count=2", "cpu=2", "slots=2 max-slots=4",
        "slots=2 max_slots = 4", "slots-max=4 slots=2", "slots_max=4 slots=2\r"}) {
    INFO(line);
    CHECK(read(std::string("a ") + line + "\n") == std::vector<Host>{{"a", 2}});
  }
  CHECK(read("a:2\n[fe80::1]:3\nfe80::2\n") == std::vector<Host>{{"a", 2}, {"fe80::1", 3}, {"fe80::2", 1}});
  for (const char* line :
       {"a slots", "a slots=", "a =2", "a = 2", "a slots=2 max_slots=x", "a user=b", "a 2", "a:0", "a:"}) {
    INFO(line);
    CHECK_THROWS_AS(read(std::string(line) + "\n"), InputError);
  }
}

TEST_CASE("a host that is named twice has the slots of both, and only an address has colons") {
  CHECK(parse_hosts("a,b:2,a:3") == std::vector<Host>{{"a", 4}, {"b", 2}});
  CHECK(parse_hosts("fe80::1,::1") == std::vector<Host>{{"fe80::1", 1}, {"::1", 1}});
  for (const char* list : {"a:2:3", "[a:b]", "10.0.0.1:22:2", "x::y"}) {
    INFO(list);
    CHECK_THROWS_AS(parse_hosts(list), InputError);
  }
}

TEST_CASE("what a command would take for an option, or a shell for more, is no name") {
  const TemporaryFolder folder;
  for (const char* name : {"-oProxyCommand=touch${IFS}x", "-", "--", "[-x]", "a;b", "$(a)", "a b", "a'", "`a`",
                           "user@a", "a/b", "a\x1b[2J", "\xff", "[]", "a]", "a\\"}) {
    INFO(name);
    if (std::string_view(name) != "a b") {
      require_mentions(message_of<InputError>([&] { (void)parse_hosts(std::string("a1,") + name); }), {"is no name"});
      write_file(folder / "hosts", std::string("a1\n") + name + " slots=1\n");
      const std::string text = message_of<InputError>([&] { (void)read_hostfile(folder / "hosts"); });
      require_mentions(text, {"hosts, line 2", "is no name"});
      CHECK(text.find('\x1b') == std::string::npos);
    }
    CHECK_THROWS_AS(checked_host(name), InputError);
  }
  CHECK_THROWS_AS(checked_host(std::string(300, 'a')), InputError);
}

TEST_CASE("more slots or hosts than can be counted are refused") {
  std::string list;
  for (int i = 0; i < 2048; ++i) list += (i == 0 ? "h" : ",h") + std::to_string(i) + ":1048576";
  require_mentions(message_of<InputError>([&] { (void)parse_hosts(list); }), {"more than 1048576 slots"});
  std::string tasks = "1(x1048576)";
  for (int i = 0; i < 2000; ++i) tasks += ",1(x1048576)";
  CHECK_THROWS_AS(parse_tasks_per_node(tasks), InputError);
  const TemporaryFolder folder;
  std::string many;
  for (int i = 0; i < 100'000; ++i) many += "h" + std::to_string(i) + "\n";
  write_file(folder / "hosts", many);
  CHECK(read_hostfile(folder / "hosts").size() == 100'000);
}

TEST_CASE("thousands of damages: InputError or hosts that may be named") {
  const RngKey key(33 * test::seed(), Purpose::test);
  std::uint64_t draw = 0;
  const auto below = [&](std::size_t bound) { return static_cast<std::size_t>(key.below(bound, draw++)); };
  const TemporaryFolder folder;
  for (int i = 0; i < 2000; ++i) {
    std::string text = "node1:4,[fe80::1]:2,node-2 slots=3,2(x3)";
    for (std::size_t changes = 1 + below(8); changes > 0; --changes) {
      const std::size_t at = below(text.size());
      if (below(2) == 0)
        text[at] = static_cast<char>(below(256));
      else
        text.insert(at, 1, "-:[](),x=\n 9#"[below(13)]);
    }
    INFO(text);
    const auto see = [](const std::vector<Host>& hosts) {
      for (const Host& host : hosts) {
        REQUIRE(checked_host(host.name) == host.name);
        REQUIRE(host.slots >= 1);
      }
    };
    try {
      see(parse_hosts(text));
    } catch (const InputError&) {
    }
    try {
      static_cast<void>(parse_tasks_per_node(text));
    } catch (const InputError&) {
    }
    if (i % 10 != 0) continue;
    write_file(folder / "hosts", text);
    try {
      see(read_hostfile(folder / "hosts"));
    } catch (const InputError&) {
    }
  }
}

TEST_CASE("a signal asks to stop, unless it was ignored from the start, as by nohup") {
  const auto request_after = [](int signal, bool ignored) {
    const pid_t child = fork();
    if (child == 0) {
      std::signal(signal, ignored ? SIG_IGN : SIG_DFL);
      SignalInbox inbox;
      raise(signal);
      _exit(static_cast<int>(inbox.wait(0)));
    }
    int status = 0;
    waitpid(child, &status, 0);
    return static_cast<StopRequest>(WEXITSTATUS(status));
  };
  for (const int signal : {SIGHUP, SIGINT, SIGTERM, SIGUSR1}) {
    CHECK(request_after(signal, false) == StopRequest::stop);
    CHECK(request_after(signal, true) == StopRequest::none);
  }
}

TEST_CASE("a child has the usual SIGPIPE") {
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  ChildProcess child({"sh", "-c", "kill -PIPE $$"}, ChildOutput::dropped);
  while (!child.status()) usleep(1000);
  CHECK(child.ended_by() == SIGPIPE);
  std::signal(SIGPIPE, before);
}
