#pragma once
#include <netinet/in.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ronda/collectives/watch/record_view.hpp>
#include <ronda/collectives/watch/siphash.hpp>

namespace ronda {

/// How watchdogs of different hosts talk when MPI cannot: datagrams over IPv4, sent to every address that a host has,
/// so that what one network carries no more another may. Nothing waits for an answer. Used by one thread at a time.
///
/// One rank of a host, its *voice*, speaks for all ranks there, to few ranks of each other host, its *contacts*: the
/// two lowest, and the one that has last spoken for it. So a word to all costs three datagrams a host, however many
/// ranks there are.
///
/// Anybody may send datagrams to these sockets. Each letter ends in a hash that cannot be made without the key that the
/// job's ranks share and that is never sent; it names its sender, its receiver, and a number that grows from letter to
/// letter of a sender. So what is forged, changed, cut, sent a second time or to another rank is dropped, and what is
/// kept of strangers is nothing. Nobody hides what the letters say.
class SideChannel {
 public:
  /// Opens a socket. Throws ResourceError.
  SideChannel();
  SideChannel(const SideChannel&) = delete;
  ~SideChannel();

  /// Where this rank can be reached, in a form for others' `meet`; empty where that cannot be told.
  [[nodiscard]] std::string address() const;

  /// @param key        that the ranks of the job share, and nobody else has
  /// @param hosts      by rank: a number of its host
  /// @param addresses  by rank; those of this rank's host are not looked at
  void meet(int rank, const SipKey& key, std::vector<int> hosts, const std::vector<std::string>& addresses);

  // To all other hosts.
  void say_hello();
  /// @param ranks  of this host
  void tell(std::span<const RankStatus> ranks);
  void say_over();
  /// What a rank of this host did last, to those hosts whose ranks have an alarm and may have to tell what happened.
  void tell_trail(const RankState& state, double now);

  /// Takes in what has come, at most so much that nobody can keep this thread busy.
  /// @param now  in seconds, of any clock
  void receive(double now);

  struct Heard {
    double at = 0;  ///< when the voice of its host last told of it
    RankState state;
  };
  /// What is known of `rank` of another host; null where it is nothing.
  [[nodiscard]] const Heard* heard(int rank) const;
  /// When a rank of another host last had an alarm.
  [[nodiscard]] double alarmed_at() const noexcept { return alarmed_at_; }
  /// The lowest rank of another host that has an alarm and was heard of since `since`.
  [[nodiscard]] std::optional<int> lowest_alarmed(double since) const;
  [[nodiscard]] bool over() const noexcept { return over_; }
  /// Ranks of hosts from which not even a greeting has come.
  [[nodiscard]] std::vector<int> unheard() const;
  /// Datagrams that have left so far.
  [[nodiscard]] std::uint64_t sent() const noexcept { return sent_; }

 private:
  enum class Matter : std::uint32_t { hello, statuses, trail, over };
  struct Letter;
  struct Status;
  struct Host {
    std::vector<int> contacts;  ///< its lowest ranks
    std::optional<int> voice;   ///< who has last spoken for it
    double alarmed_at = -1e9;   ///< when it last had an alarm
  };
  struct Rank {
    int host = 0;
    std::uint64_t counter = 0;  ///< of its latest letter
    std::vector<sockaddr_in> addresses;
  };

  void send_to_all(Matter matter, std::span<const RankStatus> statuses = {});
  void send_to_host(const Host& host, Matter matter, std::span<const RankStatus> statuses,
                    std::span<const Record> records = {});
  void send(int to, Matter matter, std::span<const RankStatus> statuses, std::span<const Record> records);
  void take_in(std::span<const std::byte> bytes, double now);
  [[nodiscard]] bool is_genuine(const Letter& letter, std::span<const std::byte> bytes) const;

  int socket_ = -1;
  int rank_ = 0;
  SipKey key_;
  std::uint64_t counter_ = 0, sent_ = 0;
  std::vector<Rank> ranks_;
  std::map<int, Host> hosts_;  ///< other ones
  std::map<int, Heard> heard_;
  double alarmed_at_ = -1e9;
  bool over_ = false;
};

}  // namespace ronda
