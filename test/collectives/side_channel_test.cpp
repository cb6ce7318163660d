// What the watchdogs of different hosts tell each other, and what they do not take from strangers.
#include "support/catch.hpp"
#include "support/seed.hpp"

#include <ronda/collectives/watch/side_channel.hpp>
#include <ronda/collectives/watch/siphash.hpp>

#include <arpa/inet.h>
#include <malloc.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace ronda::side_channel_test {
namespace {

using Bytes = std::vector<std::byte>;

TEST_CASE("SipHash-2-4 gives what its authors published") {
  const SipKey key{{0x0706050403020100, 0x0f0e0d0c0b0a0908}};
  const std::vector<std::pair<std::size_t, std::uint64_t>> published{
      {0, 0x726fdb47dd0e0e31},  {1, 0x74f839c593dc67fd}, {2, 0x0d6c8009d9a94f5a},  {3, 0x85676696d7fb7e2d},
      {7, 0xab0200f58b01d137},  {8, 0x93f5f5799a932462}, {15, 0xa129ca6149be45e5},  // the paper's, appendix A
      {16, 0x3f2acc7f57c29bdb}, {63, 0x958a324ceb064572}};
  for (const auto& [length, hash] : published) {
    Bytes message(length);
    for (std::size_t i = 0; i < length; ++i) message[i] = static_cast<std::byte>(i);
    CHECK(siphash(key, message) == hash);
  }
}

/// A socket of somebody who is no rank.
class Stranger {
 public:
  Stranger() : socket_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in own = loopback(0);
    REQUIRE(::bind(socket_, reinterpret_cast<const sockaddr*>(&own), sizeof own) == 0);
    socklen_t length = sizeof own;
    REQUIRE(::getsockname(socket_, reinterpret_cast<sockaddr*>(&own), &length) == 0);
    port_ = ntohs(own.sin_port);
  }
  Stranger(const Stranger&) = delete;
  ~Stranger() { ::close(socket_); }

  [[nodiscard]] std::string address() const { return std::to_string(port_) + " 127.0.0.1"; }
  void send(const SideChannel& to, const Bytes& bytes) const {
    const sockaddr_in address = loopback(static_cast<std::uint16_t>(std::stoi(to.address())));
    REQUIRE(::sendto(socket_, bytes.data(), bytes.size(), 0, reinterpret_cast<const sockaddr*>(&address),
                     sizeof address) == static_cast<ssize_t>(bytes.size()));
  }
  /// All that has come.
  [[nodiscard]] std::vector<Bytes> take() const {
    std::vector<Bytes> letters;
    for (;;) {
      Bytes bytes(65536);
      const ssize_t length = ::recv(socket_, bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (length < 0) return letters;
      bytes.resize(static_cast<std::size_t>(length));
      letters.push_back(std::move(bytes));
    }
  }

 private:
  static sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }
  int socket_;
  std::uint16_t port_ = 0;
};

RankState state_of_rank(int rank, bool alarmed) {
  RankState state;
  state.status.rank = rank;
  state.status.still = true;
  state.status.alarmed = alarmed;
  state.status.step = 7;
  state.trail.push_back(Description(Kind::allreduce, "bucket 1", "ring", 512, DType::float32).run);
  return state;
}

/// Ranks 0 and 1 on a host, 2 and 3 on another. A stranger sits on the way to the first of them: rank 2's letters go to
/// him.
struct Network {
  SideChannel victim, sender;
  Stranger stranger;

  Network() {
    const SipKey key = SipKey::random().value();
    const std::vector<int> hosts{0, 0, 2, 2};
    sender.meet(2, key, hosts, {stranger.address(), "", "", ""});
    victim.meet(0, key, hosts, {"", "", sender.address(), ""});
  }
  /// A letter from rank 2 to rank 0.
  Bytes letter() {
    const auto letters = stranger.take();
    REQUIRE(letters.size() == 1);
    return letters[0];
  }
  /// All that comes is dropped: nothing that a rank can have said is known.
  [[nodiscard]] bool is_untouched() {
    victim.receive(1);
    return !victim.over() && victim.alarmed_at() < 0 && !victim.unheard().empty() && victim.heard(2) == nullptr;
  }
  void send(const Bytes& bytes) { stranger.send(victim, bytes); }
};

TEST_CASE("what a rank says arrives, once") {
  Network network;
  network.sender.say_hello();
  const Bytes hello = network.letter();
  CHECK(network.victim.unheard() == std::vector<int>{2, 3});
  network.send(hello);
  network.victim.receive(1);
  CHECK(network.victim.unheard().empty());

  const std::vector<RankStatus> statuses{state_of_rank(2, true).status, state_of_rank(3, false).status};
  network.sender.tell(statuses);
  const Bytes letter = network.letter();
  network.send(letter);
  network.victim.receive(2);
  REQUIRE(network.victim.heard(3) != nullptr);
  CHECK(network.victim.heard(2)->state.status.step == 7);
  CHECK(network.victim.alarmed_at() == 2);
  CHECK(network.victim.lowest_alarmed(1) == 2);
  for (int times = 0; times < 10; ++times) network.send(letter);
  network.send(hello);  // older
  network.victim.receive(3);
  CHECK(network.victim.alarmed_at() == 2);
  CHECK(network.victim.heard(2)->at == 2);
}

TEST_CASE("what a rank did last goes to hosts with an alarm") {
  Network network;
  network.sender.tell_trail(state_of_rank(3, false), 1);
  CHECK(network.stranger.take().empty());

  const RankState own = state_of_rank(0, true);
  network.victim.tell({&own.status, 1});
  network.sender.receive(1);
  network.sender.tell_trail(state_of_rank(3, false), 1);
  network.send(network.letter());
  network.victim.receive(1);
  REQUIRE(network.victim.heard(3) != nullptr);
  REQUIRE(network.victim.heard(3)->state.trail.size() == 1);
  CHECK(network.victim.heard(3)->state.trail[0].label.view() == "bucket 1");
}

TEST_CASE("a letter with any bit changed, of any other length, or to another rank is dropped") {
  Network network;
  network.sender.say_over();
  const Bytes over = network.letter();
  for (std::size_t bit = 0; bit < 8 * over.size(); ++bit) {
    Bytes changed = over;
    changed[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    network.send(changed);
    REQUIRE(network.is_untouched());
  }
  for (std::size_t length = 0; length <= 2000; ++length) {
    Bytes changed = over;
    changed.resize(length);
    if (length == over.size()) continue;
    network.send(changed);
    REQUIRE(network.is_untouched());
  }
  SideChannel other;  // rank 1, on the host of rank 0, has the key as well
  SideChannel of_other_job;
  other.meet(1, SipKey{}, {0, 0, 2, 2}, {"", "", "", ""});
  of_other_job.meet(0, SipKey::random().value(), {0, 0, 2, 2}, {"", "", "", ""});
  for (SideChannel* channel : {&other, &of_other_job}) {
    network.stranger.send(*channel, over);
    channel->receive(1);
    CHECK_FALSE(channel->over());
  }
  network.send(over);
  network.victim.receive(1);
  CHECK(network.victim.over());
}

TEST_CASE("seconds of forged, old and damaged datagrams change nothing, and take no memory") {
  Network network;
  std::vector<Bytes> heard;
  const std::vector<RankStatus> statuses(12, state_of_rank(2, true).status);
  for (int i = 0; i < 3; ++i) {
    network.sender.say_hello();
    heard.push_back(network.letter());
    network.sender.tell(statuses);
    heard.push_back(network.letter());
    network.sender.say_over();
    heard.push_back(network.letter());
  }
  std::mt19937_64 random(17 * test::seed());
  const auto attack = [&](int letters) {
    for (int i = 0; i < letters; ++i) {
      Bytes bytes = heard[random() % heard.size()];
      switch (random() % 4) {
        case 0: bytes[random() % bytes.size()] ^= static_cast<std::byte>(1 + random() % 255); break;
        case 1: {  // another kind, sender, receiver, version, count
          const auto word = static_cast<std::uint32_t>(random() % 2 == 0 ? random() % 5 : random());
          std::memcpy(bytes.data() + 8 + 4 * (random() % 8), &word, sizeof word);
          bytes[0] ^= std::byte{1};  // where the word is what it was
          break;
        }
        case 2: {
          const std::size_t length = random() % 2001;
          if (length == bytes.size()) continue;
          bytes.resize(length, static_cast<std::byte>(random()));
          break;
        }
        default:
          for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
      }
      network.send(bytes);
      if (i % 50 == 0) network.victim.receive(1);
    }
    REQUIRE(network.is_untouched());
  };
  attack(2000);
  const std::size_t before = ::mallinfo2().uordblks;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  while (std::chrono::steady_clock::now() < end) attack(2000);
  CHECK(::mallinfo2().uordblks <= before + 65536);
}

TEST_CASE("of a damaged status of a rank that has the key nothing is taken that cannot be") {
  Network network;
  RankState state = state_of_rank(3, false);
  state.status.activity = static_cast<Activity>(200);
  state.status.activity_seconds = std::numeric_limits<float>::quiet_NaN();
  state.status.activity_limit = 1e30F;
  state.status.missing_count = 1000;
  const std::vector<RankStatus> statuses{state.status, state_of_rank(0, true).status, state_of_rank(2, true).status};
  network.sender.tell(statuses);
  network.send(network.letter());
  network.victim.receive(1);
  const RankStatus& taken = network.victim.heard(3)->state.status;
  CHECK(taken.activity == Activity::running);
  CHECK(taken.activity_seconds == 0);
  CHECK(taken.activity_limit == 0);
  CHECK(taken.missing_count == RankStatus::most_missing);
  CHECK(network.victim.heard(0) == nullptr);  // is not of the sender's host
}

// Scale ---------------------------------------------------------------------------------------------------------------

TEST_CASE("a host of 32 ranks among 128 sends a few datagrams to each other host") {
  const int hosts = 128, ranks_a_host = 32, ranks = hosts * ranks_a_host;
  Stranger all_others;
  std::vector<int> host_of;
  for (int rank = 0; rank < ranks; ++rank) host_of.push_back(rank / ranks_a_host);
  SideChannel voice;
  voice.meet(0, SipKey::random().value(), host_of,
             std::vector<std::string>(static_cast<std::size_t>(ranks), all_others.address()));
  const auto letters = [&](const auto& say) {
    const std::uint64_t before = voice.sent();
    say();
    static_cast<void>(all_others.take());
    return voice.sent() - before;
  };
  CHECK(letters([&] { voice.say_hello(); }) == 2 * (hosts - 1));
  CHECK(letters([&] { voice.say_over(); }) == 2 * (hosts - 1));
  std::vector<RankStatus> statuses;
  for (int rank = 0; rank < ranks_a_host; ++rank) statuses.push_back(state_of_rank(rank, true).status);
  CHECK(letters([&] { voice.tell(statuses); }) == 3 * 2 * (hosts - 1));
  CHECK(letters([&] { voice.tell_trail(state_of_rank(0, true), 1); }) == 0);  // nobody else has an alarm
}

}  // namespace
}  // namespace ronda::side_channel_test
