#pragma once
#include <netinet/in.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <ronda/collectives/watch/record_view.hpp>

namespace ronda {

/// How watchdogs of different hosts talk when MPI cannot: datagrams over IPv4, sent to every address that a host has,
/// so that what one network carries no more another may. Nothing waits for an answer. Used by one thread at a time.
class SideChannel {
 public:
  /// Opens a socket. Throws ResourceError.
  SideChannel();
  SideChannel(const SideChannel&) = delete;
  ~SideChannel();

  /// Where this rank can be reached, in a form for others' `meet`; empty where that cannot be told.
  [[nodiscard]] std::string address() const;

  struct Peer {
    int rank = 0;
    std::string address;
    bool wants_records = false;  ///< it may have to tell what happened
  };
  /// @param token  a number that the ranks of the job share: what comes with another is none of theirs
  void meet(int rank, std::uint64_t token, const std::vector<Peer>& peers);

  void say_hello();
  /// A rank's state, to all; its records to those that want them. Also another rank's that does not speak for itself.
  void tell(const RankState& state);
  void say_over();

  /// Takes in what has come. @param now  in seconds, of any clock
  void receive(double now);

  struct Heard {
    double at = -1e9;  ///< when it spoke itself
    std::optional<RankState> state;
  };
  /// What has come of or about `rank`; null where nothing has.
  [[nodiscard]] const Heard* heard(int rank) const;
  /// When a rank last said that it stands still too long.
  [[nodiscard]] double alarmed_at() const noexcept { return alarmed_at_; }
  [[nodiscard]] bool over() const noexcept { return over_; }
  /// Ranks from which not even a greeting has come.
  [[nodiscard]] std::vector<int> unheard() const;

 private:
  struct Letter;
  struct Reachable {
    int rank;
    bool wants_records;
    std::vector<sockaddr_in> addresses;
  };
  void send(const Letter& letter, const std::vector<Record>& records, const Reachable& to);
  void send_to_all(const Letter& letter, const std::vector<Record>& records);

  int socket_ = -1;
  int rank_ = 0;
  std::uint64_t token_ = 0;
  std::vector<Reachable> peers_;
  std::map<int, Heard> heard_;
  double alarmed_at_ = -1e9;
  bool over_ = false;
};

}  // namespace ronda
