#pragma once
#include <cstdint>
#include <type_traits>

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

}  // namespace ronda
