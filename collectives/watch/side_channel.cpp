#include <ronda/collectives/watch/side_channel.hpp>
#include <ronda/runtime/core/error.hpp>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sstream>
#include <utility>

namespace ronda {
namespace {

/// In a letter; more would need more datagrams than one wants to see lost.
constexpr std::size_t most_records = 32;

enum class Matter : std::uint32_t { hello, state, over };

}  // namespace

struct SideChannel::Letter {
  std::uint64_t token = 0;
  std::uint32_t version = record_version;
  Matter matter = Matter::hello;
  std::int32_t from = 0;
  std::uint32_t records = 0;  ///< that follow
  RankStatus status;
};

SideChannel::SideChannel() : socket_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
  sockaddr_in any{};
  any.sin_family = AF_INET;
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

void SideChannel::meet(int rank, std::uint64_t token, const std::vector<Peer>& peers) {
  rank_ = rank;
  token_ = token;
  for (const Peer& peer : peers) {
    Reachable reachable{peer.rank, peer.wants_records, {}};
    std::istringstream text(peer.address);
    std::uint16_t port = 0;
    text >> port;
    for (std::string name; text >> name;) {
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_port = htons(port);
      if (::inet_pton(AF_INET, name.c_str(), &address.sin_addr) == 1) reachable.addresses.push_back(address);
    }
    peers_.push_back(std::move(reachable));
  }
}

void SideChannel::send(const Letter& letter, const std::vector<Record>& records, const Reachable& to) {
  Letter head = letter;
  const std::size_t count = to.wants_records ? std::min(records.size(), most_records) : 0;
  head.records = static_cast<std::uint32_t>(count);
  std::array<iovec, 2> parts{{{&head, sizeof head}, {nullptr, count * sizeof(Record)}}};
  if (count > 0) parts[1].iov_base = const_cast<Record*>(records.data() + (records.size() - count));  // the latest
  for (const sockaddr_in& address : to.addresses) {
    msghdr message{};
    message.msg_name = const_cast<sockaddr_in*>(&address);
    message.msg_namelen = sizeof address;
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    static_cast<void>(::sendmsg(socket_, &message, MSG_DONTWAIT | MSG_NOSIGNAL));  // what is lost is said again
  }
}

void SideChannel::send_to_all(const Letter& letter, const std::vector<Record>& records) {
  for (const Reachable& peer : peers_) send(letter, records, peer);
}

void SideChannel::say_hello() {
  send_to_all({.token = token_, .matter = Matter::hello, .from = rank_, .status = {}}, {});
}

void SideChannel::tell(const RankState& state) {
  send_to_all({.token = token_, .matter = Matter::state, .from = rank_, .status = state.status}, state.trail);
}

void SideChannel::say_over() {
  send_to_all({.token = token_, .matter = Matter::over, .from = rank_, .status = {}}, {});
}

void SideChannel::receive(double now) {
  alignas(Record) std::array<std::byte, sizeof(Letter) + most_records * sizeof(Record)> bytes;
  for (;;) {
    const ssize_t length = ::recv(socket_, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (length < 0) return;
    Letter letter;
    const auto size = static_cast<std::size_t>(length);
    if (size < sizeof letter) continue;
    std::memcpy(&letter, bytes.data(), sizeof letter);
    if (letter.token != token_ || letter.version != record_version || letter.records > most_records ||
        size != sizeof letter + letter.records * sizeof(Record))
      continue;
    heard_[letter.from].at = now;
    if (letter.matter == Matter::over) over_ = true;
    if (letter.matter != Matter::state) continue;
    if (letter.status.alarmed) alarmed_at_ = now;
    letter.status.missing_count =
        std::min(letter.status.missing_count, static_cast<std::uint32_t>(RankStatus::most_missing));
    RankState state{letter.status, std::vector<Record>(letter.records)};
    if (letter.records > 0)
      std::memcpy(static_cast<void*>(state.trail.data()), bytes.data() + sizeof letter,
                  letter.records * sizeof(Record));
    heard_[letter.status.rank].state = std::move(state);
  }
}

const SideChannel::Heard* SideChannel::heard(int rank) const {
  const auto found = heard_.find(rank);
  return found == heard_.end() ? nullptr : &found->second;
}

std::vector<int> SideChannel::unheard() const {
  std::vector<int> ranks;
  for (const Reachable& peer : peers_)
    if (!heard_.contains(peer.rank) || heard_.at(peer.rank).at < 0) ranks.push_back(peer.rank);
  return ranks;
}

}  // namespace ronda
