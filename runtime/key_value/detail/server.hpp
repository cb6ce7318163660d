#pragma once
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/runtime/key_value/detail/channel.hpp>
#include <ronda/runtime/key_value/detail/served_part.hpp>
#include <ronda/runtime/key_value/key_value_store.hpp>

namespace ronda {

/// A server of a KeyValueStore: receives the workers' questions, gives them to the parts, and sends the answers. After
/// the first failure every question is answered with that failure, so that no worker waits, until all workers have
/// gone.
///
/// A *stall* is such a failure: every open worker waits for an answer that only another worker's question could bring.
/// When every open worker has unanswered questions, the server sends each a probe. A worker replies when it waits, and
/// only for this server: only an answer from here could make it continue. After the replies of all, and no question
/// since the probe, no such answer will come.
class KeyValueServer final : private Answers {
 public:
  KeyValueServer(const Communicator& communicator, const Roles& roles, const KeyValueOptions& options);
  KeyValueServer(const KeyValueServer&) = delete;

  void set_update(MakePartUpdate make_update) { together_.make_update = std::move(make_update); }
  [[nodiscard]] bool has_parts() const noexcept { return !parts_.empty(); }
  void serve();
  [[nodiscard]] KeyValueStatistics statistics() const;

 private:
  struct Connection {
    Connection(const Communicator& communicator, int worker) : channel(communicator, worker) {}
    Channel channel;
    GradientPool::Piece incoming;  ///< follows the header that is being received
    std::size_t unanswered = 0;    ///< number of questions without an answer
  };

  [[nodiscard]] bool move_on();
  [[nodiscard]] bool take_question(int worker);
  void take(const Asked& asked, const MessageHeader& question, GradientPool::Piece incoming);
  void do_as_asked(const Asked& asked, const MessageHeader& question, GradientPool::Piece incoming);
  void make_part(const Asked& asked, const MessageHeader& question, const float* incoming);
  void enter_barrier(const Asked& asked);
  void end_barrier();
  void close(const Asked& asked);
  void leave(int worker, const std::string& why);
  void worker_gone(int worker);
  void fail(std::exception_ptr failure);
  [[nodiscard]] bool is_over();
  void look_for_stall();
  [[nodiscard]] Message why_stalled() const;

  [[nodiscard]] Channel& channel(int worker) { return connections_[static_cast<std::size_t>(worker)].channel; }
  void send(const Asked& asked, MessageHeader answer, std::span<const std::byte> bytes = {},
            std::shared_ptr<const void> keeper = nullptr);
  void send_answer(const Asked& asked, MessageKind kind);
  void send_failure(const Asked& asked);
  void done(const Asked& asked) override { send_answer(asked, MessageKind::done); }
  void dropped(const Asked& asked) override { send_answer(asked, MessageKind::dropped); }
  void values(const Asked& asked, const PartValues& values) override;

  Communicator communicator_;
  KeyValueStatistics statistics_;
  ServedTogether together_;
  std::deque<Connection> connections_;  ///< by worker
  std::map<std::uint32_t, std::unique_ptr<ServedPart>> parts_;
  std::vector<Asked> in_barrier_;
  /// The search for a stall: a probe is sent to every open worker; any question since then ends it.
  struct Probe {
    std::uint64_t number = 0;
    bool sent = false;
    std::int64_t replies = 0;
  } probe_;
  std::exception_ptr failure_;
  std::shared_ptr<const std::string> failure_text_;  ///< its message, packed
};

}  // namespace ronda
