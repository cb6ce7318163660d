#include <ronda/core/cores.hpp>
#include <ronda/core/text.hpp>
#include <ronda/runtime/trainer/binding.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace ronda {
namespace {

/// `0-3 | 4-7 on node1 and 2 hosts like it; 0-7 on node4`: ranks in ascending order, between bars.
std::string by_host(const std::vector<std::string>& cores_of_rank, const HostNames& host_of_rank) {
  std::map<std::string, std::string> cores_of_host;
  for (std::size_t rank = 0; rank < cores_of_rank.size(); ++rank) {
    std::string& cores = cores_of_host[host_of_rank[rank]];
    cores += (cores.empty() ? "" : " | ") + cores_of_rank[rank];
  }
  std::map<std::string, std::vector<std::string>> hosts_with;
  for (const auto& [host, cores] : cores_of_host) hosts_with[cores].push_back(host);
  std::string text;
  for (const auto& [cores, hosts] : hosts_with) {
    text += (text.empty() ? "" : "; ") + cores + " on " + hosts.front();
    if (hosts.size() > 1) text += " and " + std::to_string(hosts.size() - 1) + " like it";
  }
  return text;
}

/// The first rank that has something to complain of, and how many others have.
/// @param complaints  of all ranks, packed
void warn_of_first(const std::vector<std::string>& complaints, const HostNames& hosts, EventSink& sink) {
  const auto first = std::ranges::find_if(complaints, [](const auto& text) { return !text.empty(); });
  if (first == complaints.end()) return;
  const auto rank = static_cast<std::size_t>(first - complaints.begin());
  const auto others = std::ranges::count_if(complaints, [](const auto& text) { return !text.empty(); }) - 1;
  const std::string alike = others > 0 ? "; the same goes for " + counted(others, "other rank") : "";
  sink.on_message(Severity::warning,
                  "rank " + std::to_string(rank) + " on " + hosts[rank] + " " + Message::unpacked(*first) + alike);
}

std::string number_text(double number) {
  TextWriter text;
  text.precision(3);
  text << number;
  return text.str();
}

}  // namespace

Message why_too_many_threads(int threads, const CoreShare& share, int bound, int machine, int ranks) {
  const int cores = std::max(1, static_cast<int>(share.mine + 1e-6));
  const bool by_quota = share.mine < share.bound;
  if (threads <= cores && !(by_quota && share.mine < 1)) return {};
  const std::string begin = "computes with " + counted(threads, "thread");
  const Message fewer = setting("threads", cores);
  const Message most = threads > cores ? "; or take " + fewer : "";
  if (by_quota)
    return begin + " on the time of " + number_text(share.mine) + (share.mine == 1 ? " core" : " cores") +
           ", its part of the quota of its container or job, and waits for more most "
           "of the time; give that more (docker run --cpus, srun --cpus-per-task), or start fewer ranks" +
           most;
  const std::string on = begin + " on " + counted(cores, "core");
  if (bound > cores || share.mine < 1)
    return on + ", which is its part of " + counted(bound, "core") +
           " that it shares with other ranks; start fewer ranks" + most;
  const std::string host = " of " + std::to_string(machine);
  if (bound < machine && threads <= machine / ranks)
    return on + host + ", to which it was bound; give it more, by mpirun --bind-to none, mpirun --map-by slot:PE=" +
           std::to_string(threads) + " or srun --cpus-per-task=" + std::to_string(threads) + most;
  return on + host +
         ", and there are no more for it; threads that take turns are slower than fewer that do not: take " + fewer;
}

void tell_binding(const World& world, const ThreadCount& threads, const std::string& threads_text, EventSink& sink) {
  const Communicator& communicator = world.communicator();
  const auto& hosts = communicator.topology().hosts;
  const CoreMask mask = CoreMask::of(0);
  const auto cores = communicator.gather_texts(mask.text());
  sink.on_detail("cores by rank: " + by_host(cores, hosts) + "; threads of each: " + threads_text + ", progress " +
                 std::string(name_of(world.progress())));
  const auto notes = communicator.gather_texts(threads.note.packed());
  const auto note = std::ranges::find_if(notes, [](const auto& text) { return !text.empty(); });
  if (note != notes.end()) sink.on_message(Severity::note, Message::unpacked(*note));

  const CoreShare& share = world.core_share();
  const auto bound = static_cast<int>(mask.count());
  const auto machine = static_cast<int>(CoreMask::of(1).count());  // nothing has bound its first process
  Message complaint;
  if (share.crowded)
    complaint = "and others share cores (" + mask.text() +
                ") though the host has some that no rank may run on; start the ranks by mpirun --bind-to core, or by "
                "srun --cpu-bind=cores with enough --cpus-per-task";
  else if (threads.count > 1 && share.bound < bound && CoreMask::of_openmp().count() > 0)
    complaint =
        "and others bind their threads to the same cores, by OMP_PROC_BIND or OMP_PLACES; give each rank cores "
        "of its own, by mpirun --map-by slot:PE=" +
        std::to_string(threads.count) + " or srun --cpus-per-task=" + std::to_string(threads.count) +
        ", or unset these variables";
  else
    complaint = why_too_many_threads(threads.count, share, bound, machine, communicator.topology().ranks_on_node);
  warn_of_first(communicator.gather_texts(complaint.packed()), hosts, sink);
}

}  // namespace ronda
