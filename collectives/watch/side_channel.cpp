#include <ronda/collectives/watch/side_channel.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace ronda {
namespace {

/// Ranks that a host is reached by, besides the one that has last spoken for it.
constexpr std::size_t contacts_a_host = 2;
/// In a letter: as many as fit into one packet of most networks.
constexpr std::size_t most_statuses = 12;
/// In a letter, and of all ranks together: they all come at once to a socket that holds a few hundred kilobytes.
constexpr std::size_t most_records = 32, fewest_records = 4, records_of_all = 8192;
/// Hosts with an alarm that are told what each rank did last: the lowest of their ranks will tell.
constexpr std::size_t most_listeners = 8;
/// That are taken in before the thread does something else.
constexpr int most_letters = 4096;
constexpr int wanted_buffer = 4 << 20;  ///< bytes of the socket; the system may give less

}  // namespace

/// Goes over the network as it lies in memory, between machines of one kind.
struct SideChannel::Letter {
  std::uint64_t hash = 0;  ///< of all that follows
  std::uint64_t counter = 0;
  std::uint32_t version = record_version;
  Matter matter = Matter::hello;
  std::int32_t from = 0, to = 0;
  std::uint32_t statuses = 0, records = 0;  ///< that follow
};

/// A RankStatus on its way: any bytes are a value of it.
struct SideChannel::Status {
  enum Flags : std::uint32_t { still = 1, inside_mpi = 2, alarmed = 4, stopped = 8, dead = 16 };

  std::int32_t rank = 0;
  std::uint32_t flags = 0, activity = 0, missing_count = 0;
  float activity_seconds = 0, activity_limit = 0;
  std::uint64_t step = 0, moves = 0;
  std::array<std::int32_t, RankStatus::most_missing + 1> missing{};  ///< the last: nothing

  Status() = default;
  explicit Status(const RankStatus& status)
      : rank(status.rank),
        flags((status.still ? still : 0U) | (status.inside_mpi ? inside_mpi : 0U) | (status.alarmed ? alarmed : 0U) |
              (status.stopped ? stopped : 0U) | (status.dead ? dead : 0U)),
        activity(static_cast<std::uint32_t>(status.activity)),
        missing_count(status.missing_count),
        activity_seconds(status.activity_seconds),
        activity_limit(status.activity_limit),
        step(status.step),
        moves(status.moves) {
    std::ranges::copy(status.missing, missing.begin());
  }
  [[nodiscard]] RankStatus value() const {
    RankStatus status;
    status.rank = rank;
    status.still = (flags & still) != 0;
    status.inside_mpi = (flags & inside_mpi) != 0;
    status.alarmed = (flags & alarmed) != 0;
    status.stopped = (flags & stopped) != 0;
    status.dead = (flags & dead) != 0;
    status.activity = activity_of(activity);
    status.activity_seconds = plausible_seconds(activity_seconds);
    status.activity_limit = plausible_seconds(activity_limit);
    status.step = step;
    status.moves = moves;
    status.missing_count = std::min(missing_count, static_cast<std::uint32_t>(RankStatus::most_missing));
    std::copy_n(missing.begin(), RankStatus::most_missing, status.missing.begin());
    return status;
  }
};

SideChannel::SideChannel() : socket_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
  sockaddr_in any{};
  any.sin_family = AF_INET;
  static_cast<void>(::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &wanted_buffer, sizeof wanted_buffer));
  if (socket_ >= 0 && ::bind(socket_, reinterpret_cast<const sockaddr*>(&any), sizeof any) == 0) return;
  const std::string reason = std::strerror(errno);
  if (socket_ >= 0) ::close(socket_);
  throw ResourceError("no socket for the watchdog: " + reason);
}

SideChannel::~SideChannel() { ::close(socket_); }

std::string SideChannel::address() const {
  sockaddr_in own{};
  socklen_t length = sizeof own;
  ifaddrs* interfaces = nullptr;
  if (::getsockname(socket_, reinterpret_cast<sockaddr*>(&own), &length) != 0 || ::getifaddrs(&interfaces) != 0)
    return {};
  std::string text;
  for (const ifaddrs* at = interfaces; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET) continue;
    if ((at->ifa_flags & IFF_UP) == 0 || (at->ifa_flags & IFF_LOOPBACK) != 0) continue;
    std::array<char, INET_ADDRSTRLEN> name{};
    const auto* address = reinterpret_cast<const sockaddr_in*>(at->ifa_addr);
    if (::inet_ntop(AF_INET, &address->sin_addr, name.data(), name.size()) != nullptr)
      text += std::string(name.data()) + " ";
  }
  ::freeifaddrs(interfaces);
  return std::to_string(ntohs(own.sin_port)) + " " + (text.empty() ? "127.0.0.1" : text);
}

void SideChannel::meet(int rank, const SipKey& key, std::vector<int> hosts, const std::vector<std::string>& addresses) {
  rank_ = rank;
  key_ = key;
  ranks_.resize(hosts.size());
  for (std::size_t other = 0; other < hosts.size(); ++other) {
    ranks_[other].host = hosts[other];
    if (hosts[other] == hosts[static_cast<std::size_t>(rank)]) continue;
    Host& host = hosts_[hosts[other]];
    if (host.contacts.size() < contacts_a_host) host.contacts.push_back(static_cast<int>(other));
    TextReader text(addresses[other]);
    std::uint16_t port = 0;
    text >> port;
    for (std::string name; text >> name;) {
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_port = htons(port);
      if (::inet_pton(AF_INET, name.c_str(), &address.sin_addr) == 1) ranks_[other].addresses.push_back(address);
    }
  }
}

// To others -----------------------------------------------------------------------------------------------------------

void SideChannel::send(int to, Matter matter, std::span<const RankStatus> statuses, std::span<const Record> records) {
  std::array<std::byte, sizeof(Letter) + most_statuses * sizeof(Status) + most_records * sizeof(Record)> bytes;
  Letter letter{.counter = ++counter_,
                .matter = matter,
                .from = rank_,
                .to = to,
                .statuses = static_cast<std::uint32_t>(statuses.size()),
                .records = static_cast<std::uint32_t>(records.size())};
  std::byte* end = bytes.data() + sizeof letter;
  for (const RankStatus& status : statuses) {
    const Status wire(status);
    std::memcpy(end, &wire, sizeof wire);
    end += sizeof wire;
  }
  if (!records.empty()) std::memcpy(end, records.data(), records.size_bytes());
  end += records.size_bytes();
  std::memcpy(bytes.data(), &letter, sizeof letter);
  const std::span<const std::byte> whole(bytes.data(), end);
  letter.hash = siphash(key_, whole.subspan(sizeof letter.hash));
  std::memcpy(bytes.data(), &letter.hash, sizeof letter.hash);
  for (const sockaddr_in& address : ranks_[static_cast<std::size_t>(to)].addresses) {
    ++sent_;
    static_cast<void>(::sendto(socket_, whole.data(), whole.size(),
                               MSG_DONTWAIT | MSG_NOSIGNAL,  // is said again if lost
                               reinterpret_cast<const sockaddr*>(&address), sizeof address));
  }
}

void SideChannel::send_to_host(const Host& host, Matter matter, std::span<const RankStatus> statuses,
                               std::span<const Record> records) {
  for (const int contact : host.contacts) send(contact, matter, statuses, records);
  if (host.voice && std::ranges::find(host.contacts, *host.voice) == host.contacts.end())
    send(*host.voice, matter, statuses, records);
}

void SideChannel::send_to_all(Matter matter, std::span<const RankStatus> statuses) {
  for (const auto& [number, host] : hosts_) send_to_host(host, matter, statuses);
}

void SideChannel::say_hello() { send_to_all(Matter::hello); }

void SideChannel::say_over() { send_to_all(Matter::over); }

void SideChannel::tell(std::span<const RankStatus> ranks) {
  for (; !ranks.empty(); ranks = ranks.subspan(std::min(ranks.size(), most_statuses)))
    send_to_all(Matter::statuses, ranks.first(std::min(ranks.size(), most_statuses)));
}

void SideChannel::tell_trail(const RankState& state, double now) {
  const std::size_t most = std::clamp(records_of_all / ranks_.size(), fewest_records, most_records);
  const auto latest = std::span(state.trail).last(std::min(state.trail.size(), most));
  std::size_t listeners = 0;
  for (const auto& [number, host] : hosts_)
    if (now - host.alarmed_at < 2 && listeners++ < most_listeners)
      send_to_host(host, Matter::trail, {&state.status, 1}, latest);
}

// From others ---------------------------------------------------------------------------------------------------------

void SideChannel::receive(double now) {
  std::array<std::byte, sizeof(Letter) + most_statuses * sizeof(Status) + most_records * sizeof(Record)> bytes;
  for (int letters = 0; letters < most_letters; ++letters) {
    const ssize_t length = ::recv(socket_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_TRUNC);
    if (length < 0) return;
    if (static_cast<std::size_t>(length) <= bytes.size())
      take_in(std::span(bytes).first(static_cast<std::size_t>(length)), now);
  }
}

/// The sender is known and not of this host, and has written it, to this rank and not before.
bool SideChannel::is_genuine(const Letter& letter, std::span<const std::byte> bytes) const {
  if (letter.version != record_version || letter.statuses > most_statuses || letter.records > most_records ||
      bytes.size() != sizeof letter + letter.statuses * sizeof(Status) + letter.records * sizeof(Record))
    return false;
  if (letter.to != rank_ || letter.from < 0 || static_cast<std::size_t>(letter.from) >= ranks_.size()) return false;
  const Rank& from = ranks_[static_cast<std::size_t>(letter.from)];
  return hosts_.contains(from.host) && letter.counter > from.counter &&
         siphash(key_, bytes.subspan(sizeof letter.hash)) == letter.hash;
}

void SideChannel::take_in(std::span<const std::byte> bytes, double now) {
  Letter letter;
  if (bytes.size() < sizeof letter) return;
  std::memcpy(&letter, bytes.data(), sizeof letter);
  if (!is_genuine(letter, bytes)) return;
  Rank& from = ranks_[static_cast<std::size_t>(letter.from)];
  from.counter = letter.counter;
  Host& host = hosts_.at(from.host);
  host.voice = letter.from;
  if (letter.matter == Matter::over) over_ = true;
  bytes = bytes.subspan(sizeof letter);
  for (std::uint32_t i = 0; i < letter.statuses; ++i, bytes = bytes.subspan(sizeof(Status))) {
    Status wire;
    std::memcpy(&wire, bytes.data(), sizeof wire);
    const RankStatus status = wire.value();
    if (status.rank < 0 || static_cast<std::size_t>(status.rank) >= ranks_.size() ||
        ranks_[static_cast<std::size_t>(status.rank)].host != from.host)
      return;
    if (status.alarmed) alarmed_at_ = host.alarmed_at = now;
    Heard& heard = heard_[status.rank];
    heard.at = now;
    heard.state.status = status;
    if (letter.matter != Matter::trail || letter.statuses != 1) continue;
    heard.state.trail.assign(letter.records, {});
    if (letter.records > 0)
      std::memcpy(static_cast<void*>(heard.state.trail.data()), bytes.data() + sizeof wire,
                  letter.records * sizeof(Record));
    std::erase_if(heard.state.trail, [](const Record& record) { return !record.has_meaning(); });
  }
}

const SideChannel::Heard* SideChannel::heard(int rank) const {
  const auto found = heard_.find(rank);
  return found == heard_.end() ? nullptr : &found->second;
}

std::optional<int> SideChannel::lowest_alarmed(double since) const {
  for (const auto& [rank, heard] : heard_)
    if (heard.at >= since && heard.state.status.alarmed && !heard.state.status.stopped && !heard.state.status.dead)
      return rank;
  return {};
}

std::vector<int> SideChannel::unheard() const {
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
    if (const auto host = hosts_.find(ranks_[rank].host); host != hosts_.end() && !host->second.voice)
      ranks.push_back(static_cast<int>(rank));
  return ranks;
}

}  // namespace ronda
