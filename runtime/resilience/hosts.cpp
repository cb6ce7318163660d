#include <ronda/runtime/core/error.hpp>
#include <ronda/runtime/resilience/hosts.hpp>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <numeric>
#include <sstream>

namespace ronda {
namespace {

int whole_number(std::string_view text, const std::string& where) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 1 || number > 1 << 20)
    throw InputError(where + ": expected a number from 1 on, found '" + std::string(text) + "'");
  return number;
}

void require_different(const std::vector<Host>& hosts, const std::string& where) {
  for (std::size_t i = 0; i < hosts.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (hosts[i].name == hosts[j].name) throw InputError(where + ": the host " + hosts[i].name + " comes twice");
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

std::vector<Host> parse_hosts(std::string_view list) {
  const std::string where = "the hosts '" + std::string(list) + "'";
  std::vector<Host> hosts;
  split(list, ',', [&](std::string_view entry) {
    const std::size_t colon = entry.find(':');
    if (entry.substr(0, colon).empty()) throw InputError(where + ": expected NAME or NAME:SLOTS between commas");
    const int slots = colon == std::string_view::npos ? 1 : whole_number(entry.substr(colon + 1), where);
    hosts.push_back({std::string(entry.substr(0, colon)), slots});
  });
  require_different(hosts, where);
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
    for (std::string word; words >> word;) {
      constexpr std::string_view key = "slots=";
      if (word.starts_with("max_slots=")) continue;
      if (!word.starts_with(key)) throw InputError(where + ": expected NAME slots=N, found '" + word + "'");
      host.slots = whole_number(std::string_view(word).substr(key.size()), where);
    }
    hosts.push_back(std::move(host));
  }
  if (hosts.empty()) throw InputError("the hostfile " + path.string() + " names no host");
  require_different(hosts, path.string());
  return hosts;
}

std::vector<int> parse_tasks_per_node(std::string_view text) {
  const std::string where = "SLURM_TASKS_PER_NODE '" + std::string(text) + "'";
  std::vector<int> tasks;
  split(text, ',', [&](std::string_view entry) {
    const std::size_t repeated = entry.find("(x");
    int times = 1;
    if (repeated != std::string_view::npos) {
      if (!entry.ends_with(')')) throw InputError(where + ": expected N or N(xTIMES) between commas");
      times = whole_number(entry.substr(repeated + 2, entry.size() - repeated - 3), where);
    }
    tasks.insert(tasks.end(), static_cast<std::size_t>(times), whole_number(entry.substr(0, repeated), where));
  });
  return tasks;
}

std::string list_of(std::span<const Host> hosts) {
  std::string list;
  for (const Host& host : hosts) list += (list.empty() ? "" : ",") + host.name + ":" + std::to_string(host.slots);
  return list;
}

int slots_of(std::span<const Host> hosts) noexcept {
  return std::accumulate(hosts.begin(), hosts.end(), 0, [](int sum, const Host& host) { return sum + host.slots; });
}

}  // namespace ronda
