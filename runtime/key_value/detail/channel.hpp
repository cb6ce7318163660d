#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/function_ref.hpp>
#include <ronda/core/stream.hpp>

namespace ronda {

/// What a worker asks a server, and what that answers. Each question gets one answer, not always in their order.
enum class MessageKind : std::uint32_t {
  init,     ///< a new part: its values and its key follow
  push,     ///< a gradient of a part follows
  pull,     ///< asks for the values of a part
  barrier,  ///< answered when all workers have asked
  close,    ///< the last message of this worker
  leave,    ///< the same, after a failure; the reason follows; not answered
  waiting,  ///< the reply to a probe: this worker only waits for its answers; not answered
  done,     ///< after a pull, the values follow
  dropped,  ///< a gradient came after its round
  failed,   ///< a text follows
  probe,    ///< not an answer: asks whether this worker waits. Void after a later answer
};

/// The header of a message, which is sent as it lies.
struct MessageHeader {
  MessageKind kind = MessageKind::done;
  std::uint32_t part = 0;
  std::uint64_t operation = 0;  ///< the worker's number of the question, which the answer repeats
  /// push: the version of the values that this worker has pulled; an answer to a pull: that of the values
  std::uint64_t version = 0;
  std::uint64_t bytes = 0;                            ///< that follow
  std::uint64_t begin = 0, total = 0, key_bytes = 0;  ///< init: of the part; the bytes at the end that are the key
};
static_assert(std::is_trivially_copyable_v<MessageHeader>);

/// Messages between this rank and one other, both ways: a header, then the bytes that it announces. They arrive in the
/// order in which they were sent. What is kept does not grow with the messages that once waited. Nothing here waits;
/// errors of communication are thrown where it is asked.
class Channel {
 public:
  /// @param label  names its messages where a rank waits for them for too long
  Channel(const Communicator& communicator, int peer, std::string label = "a message of the key-value store");
  Channel(const Channel&) = delete;

  /// @param bytes   follow the header, as many as that says
  /// @param keeper  what they lie in; held until they are sent. Null: they are the caller's as long as they are needed
  void send(const MessageHeader& header, std::span<const std::byte> bytes = {},
            std::shared_ptr<const void> keeper = nullptr);
  /// Whether something has still to go. Looks at all of it anew, and moves it on.
  [[nodiscard]] bool sending();

  /// From here on the next message is received. One that goes without a question is not to be listened for longer than
  /// something is expected, as it counts as a wait for the other rank.
  void listen();
  [[nodiscard]] bool listening() const noexcept { return listening_; }
  using MemoryFor = FunctionRef<std::span<std::byte>(const MessageHeader&)>;
  /// The next message, where it has come whole; then nobody listens any more. Null: not yet.
  /// @param memory_for  gives the memory of the bytes that follow a header, as many as that says
  [[nodiscard]] const MessageHeader* receive(MemoryFor memory_for);

  [[nodiscard]] std::uint64_t sent_bytes() const noexcept { return sent_bytes_; }
  [[nodiscard]] std::uint64_t received_bytes() const noexcept { return received_bytes_; }

 private:
  struct Sending {
    [[nodiscard]] bool is_sent() const { return header_sent.ready() && bytes_sent.ready(); }
    MessageHeader header;
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> keeper;
    std::unique_ptr<Collective> header_send, bytes_send;
    Event header_sent, bytes_sent;
  };
  [[nodiscard]] std::unique_ptr<Sending> take_sending();
  void start(Sending& next);

  Communicator communicator_;
  int peer_;
  std::string label_;
  std::deque<std::unique_ptr<Sending>> sending_;
  std::size_t started_ = 0;  ///< of these, the first
  std::size_t look_at_ = 1;  ///< as many, and `send` looks at all of them; a look takes longer the more there are
  std::vector<std::unique_ptr<Sending>> idle_;  ///< a few, whose header can be sent again
  MessageHeader incoming_;
  std::unique_ptr<Collective> header_receive_, bytes_receive_;
  Event header_received_, bytes_received_;
  bool listening_ = false;
  std::uint64_t sent_bytes_ = 0, received_bytes_ = 0;
};

}  // namespace ronda
