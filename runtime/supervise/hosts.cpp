#include <ronda/core/error.hpp>
#include <ronda/runtime/supervise/hosts.hpp>

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <numeric>
#include <regex>
#include <sstream>

namespace ronda {
namespace {

constexpr int most = 1 << 20;  // slots, and hosts: more than any machine has, and few enough to be counted

/// What is said of a text that is no name, without what a terminal would act on.
std::string shown(std::string_view text) {
  constexpr std::size_t enough = 80;
  std::string safe(text.substr(0, enough));
  std::ranges::replace_if(
      safe, [](char c) { return c < ' ' || c > '~'; }, '?');
  return safe;
}

int whole_number(std::string_view text, const std::string& where) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 1 || number > most)
    throw InputError(where + ": expected a number from 1 to " + std::to_string(most) + ", found '" + shown(text) + "'");
  return number;
}

/// Names are arguments of ssh, srun and mpirun, where a word that begins with '-' is an option. A colon belongs to an
/// IPv6 address.
std::string checked_name(std::string_view text, const std::string& where) {
  std::string_view name = text;
  if (name.starts_with('[') && name.ends_with(']')) name = name.substr(1, name.size() - 2);
  const auto usual = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
           c == '_' || c == ':';
  };
  constexpr std::size_t longest = 255;
  if (name.empty() || name.size() > longest || name.starts_with('-') || !std::ranges::all_of(name, usual))
    throw InputError(where + ": '" + shown(text) +
                     "' is no name of a host: expected letters, digits, '.', '_' and '-', which is not the first, or "
                     "an IPv6 address");
  std::string checked(name);
  in6_addr address{};
  if (name.find(':') != std::string_view::npos && inet_pton(AF_INET6, checked.c_str(), &address) != 1)
    throw InputError(where + ": '" + shown(text) + "' is no name of a host and no IPv6 address");
  return checked;
}

/// `NAME`, `NAME:SLOTS`, an IPv6 address, or `[ADDRESS]:SLOTS`.
Host parse_host(std::string_view text, const std::string& where) {
  const std::size_t close = text.starts_with('[') ? text.find(']') : std::string_view::npos;
  const std::size_t colon = text.find(':', close == std::string_view::npos ? 0 : close);
  const bool bare_address = close == std::string_view::npos && text.find(':') != text.rfind(':');
  if (colon == std::string_view::npos || bare_address) return {checked_name(text, where), 1};
  return {checked_name(text.substr(0, colon), where), whole_number(text.substr(colon + 1), where)};
}

/// Each host once, with the slots of all its entries, as mpirun counts them.
std::vector<Host> merged(const std::vector<Host>& entries, const std::string& where) {
  std::vector<Host> hosts;
  std::map<std::string_view, std::size_t> places;
  std::int64_t slots = 0;
  for (const Host& entry : entries) {
    slots += entry.slots;
    if (slots > most)
      throw InputError(where + ": more than " + std::to_string(most) + " slots in all; give at most so many");
    const auto [place, first] = places.emplace(entry.name, hosts.size());
    if (first)
      hosts.push_back(entry);
    else
      hosts[place->second].slots += entry.slots;
  }
  return hosts;
}

/// Calls `see` with each of the texts between separators.
template <class See>
void split(std::string_view text, char separator, const See& see) {
  for (;;) {
    const std::size_t at = text.find(separator);
    see(text.substr(0, at));
    if (at == std::string_view::npos) return;
    text.remove_prefix(at + 1);
  }
}

/// Removes the blanks around '=': `slots = 2` becomes `slots=2`.
std::string with_joined_settings(const std::string& line) {
  static const std::regex equals("[ \\t]*=[ \\t]*");
  return std::regex_replace(line, equals, "=");
}

/// Reads a KEY=N of a hostfile; Open MPI has several names for the same key.
void read_setting(std::string_view word, Host& host, const std::string& where) {
  const std::size_t equals = std::min(word.find('='), word.size());
  std::string key(word.substr(0, equals));
  std::ranges::replace(key, '-', '_');
  const bool slots = key == "slots" || key == "count" || key == "cpu";
  if (equals == word.size() || (!slots && key != "max_slots" && key != "slots_max"))
    throw InputError(where + ": expected NAME slots=N, found '" + shown(word) + "'");
  const int value = whole_number(word.substr(equals + 1), where);
  if (slots) host.slots = value;
}

}  // namespace

std::string checked_host(std::string_view name) { return checked_name(name, "the hosts"); }

std::vector<Host> parse_hosts(std::string_view list) {
  const std::string where = "the hosts '" + shown(list) + "'";
  std::vector<Host> hosts;
  split(list, ',', [&](std::string_view entry) {
    if (entry.empty()) throw InputError(where + ": expected NAME or NAME:SLOTS between commas");
    hosts.push_back(parse_host(entry, where));
  });
  return merged(hosts, where);
}

std::vector<Host> read_hostfile(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) throw InputError("cannot open the hostfile " + path.string());
  std::vector<Host> hosts;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const std::string where = path.string() + ", line " + std::to_string(number);
    std::istringstream words(with_joined_settings(line.substr(0, line.find('#'))));
    std::string word;
    if (!(words >> word)) continue;
    Host host = parse_host(word, where);
    while (words >> word) read_setting(word, host, where);
    hosts.push_back(std::move(host));
  }
  if (hosts.empty()) throw InputError("the hostfile " + path.string() + " names no host");
  return merged(hosts, path.string());
}

std::vector<int> parse_tasks_per_node(std::string_view text) {
  const std::string where = "SLURM_TASKS_PER_NODE '" + shown(text) + "'";
  std::vector<int> tasks;
  split(text, ',', [&](std::string_view entry) {
    const std::size_t repeated = entry.find("(x");
    int times = 1;
    if (repeated != std::string_view::npos) {
      if (!entry.ends_with(')')) throw InputError(where + ": expected N or N(xTIMES) between commas");
      times = whole_number(entry.substr(repeated + 2, entry.size() - repeated - 3), where);
    }
    if (tasks.size() + static_cast<std::size_t>(times) > static_cast<std::size_t>(most))
      throw InputError(where + ": more than " + std::to_string(most) + " hosts");
    tasks.insert(tasks.end(), static_cast<std::size_t>(times), whole_number(entry.substr(0, repeated), where));
  });
  return tasks;
}

std::string list_of(std::span<const Host> hosts) {
  std::string list;
  for (const Host& host : hosts) {
    const bool colons = host.name.find(':') != std::string::npos;  // those of an IPv6 address are not the one to come
    list += (list.empty() ? "" : ",") + (colons ? "[" + host.name + "]" : host.name) + ":" + std::to_string(host.slots);
  }
  return list;
}

int slots_of(std::span<const Host> hosts) noexcept {
  return std::accumulate(hosts.begin(), hosts.end(), 0, [](int sum, const Host& host) { return sum + host.slots; });
}

namespace {

/// What scontrol makes of Slurm's `node[1-3,7]`: a name a line. The list is in the environment, so no shell reads it.
std::vector<std::string> names_of_allocation() {
  const std::unique_ptr<FILE, int (*)(FILE*)> output(popen("scontrol show hostnames \"$SLURM_JOB_NODELIST\"", "r"),
                                                     pclose);
  std::vector<std::string> names;
  std::array<char, 512> line{};
  while (output && fgets(line.data(), line.size(), output.get()) != nullptr) {
    std::string name = line.data();
    name.erase(name.find_last_not_of(" \n") + 1);
    if (!name.empty()) names.push_back(checked_host(name));
  }
  if (names.empty())
    throw InputError("scontrol does not tell the hosts of this Slurm allocation; name them with --hosts");
  return names;
}

}  // namespace

std::vector<Host> hosts_of_allocation() {
  const char* list = std::getenv("SLURM_JOB_NODELIST");
  if (list == nullptr) return {};
  if (*list == '-') throw InputError("SLURM_JOB_NODELIST begins with '-', which is no list of hosts");
  const char* tasks = std::getenv("SLURM_TASKS_PER_NODE");
  const std::vector<int> slots = parse_tasks_per_node(tasks == nullptr ? "" : tasks);
  const std::vector<std::string> names = names_of_allocation();
  if (names.size() != slots.size())
    throw InputError("Slurm's allocation has " + std::to_string(names.size()) +
                     " hosts, but SLURM_TASKS_PER_NODE tells of " + std::to_string(slots.size()) +
                     "; name the hosts with --hosts");
  std::vector<Host> hosts;
  for (std::size_t i = 0; i < names.size(); ++i) hosts.push_back({names[i], slots[i]});
  return hosts;
}

}  // namespace ronda
