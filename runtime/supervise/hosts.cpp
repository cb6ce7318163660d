#include <ronda/core/error.hpp>
#include <ronda/runtime/supervise/hosts.hpp>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <cstdint>
#include <numeric>
#include <set>
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

/// Names go to ssh, srun and mpirun, for which a word that begins with '-' is an option.
std::string checked_name(std::string_view text, const std::string& where) {
  std::string_view name = text;
  if (name.starts_with('[') && name.ends_with(']')) name = name.substr(1, name.size() - 2);  // an IPv6 address
  const auto usual = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
           c == '_' || c == ':';
  };
  constexpr std::size_t longest = 255;
  if (name.empty() || name.size() > longest || name.starts_with('-') || !std::ranges::all_of(name, usual))
    throw InputError(where + ": '" + shown(text) +
                     "' is no name of a host: expected letters, digits, '.', '_', ':' and '-', which is not the first");
  return std::string(name);
}

/// Each host once, and no more slots than can be counted.
void check_list(const std::vector<Host>& hosts, const std::string& where) {
  std::set<std::string_view> names;
  std::int64_t slots = 0;
  for (const Host& host : hosts) {
    if (!names.insert(host.name).second) throw InputError(where + ": the host " + host.name + " comes twice");
    slots += host.slots;
  }
  if (slots > most)
    throw InputError(where + ": " + std::to_string(slots) + " slots in all; expected at most " + std::to_string(most));
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

}  // namespace

std::string checked_host(std::string_view name) { return checked_name(name, "the hosts"); }

std::vector<Host> parse_hosts(std::string_view list) {
  const std::string where = "the hosts '" + shown(list) + "'";
  std::vector<Host> hosts;
  split(list, ',', [&](std::string_view entry) {
    const std::size_t colon = entry.find(':', entry.starts_with('[') ? entry.find(']') : 0);
    if (entry.substr(0, colon).empty()) throw InputError(where + ": expected NAME or NAME:SLOTS between commas");
    const int slots = colon == std::string_view::npos ? 1 : whole_number(entry.substr(colon + 1), where);
    hosts.push_back({checked_name(entry.substr(0, colon), where), slots});
  });
  check_list(hosts, where);
  return hosts;
}

std::vector<Host> read_hostfile(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) throw InputError("cannot open the hostfile " + path.string());
  std::vector<Host> hosts;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const std::string where = path.string() + ", line " + std::to_string(number);
    std::istringstream words(line.substr(0, line.find('#')));
    Host host;
    if (!(words >> host.name)) continue;
    host.name = checked_name(host.name, where);
    for (std::string word; words >> word;) {
      constexpr std::string_view key = "slots=";
      if (word.starts_with("max_slots=")) continue;
      if (!word.starts_with(key)) throw InputError(where + ": expected NAME slots=N, found '" + shown(word) + "'");
      host.slots = whole_number(std::string_view(word).substr(key.size()), where);
    }
    hosts.push_back(std::move(host));
  }
  if (hosts.empty()) throw InputError("the hostfile " + path.string() + " names no host");
  check_list(hosts, path.string());
  return hosts;
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

}  // namespace ronda
