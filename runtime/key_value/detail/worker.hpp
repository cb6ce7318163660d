#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/function_ref.hpp>
#include <ronda/core/message.hpp>
#include <ronda/runtime/key_value/detail/channel.hpp>
#include <ronda/runtime/key_value/detail/part_placement.hpp>
#include <ronda/runtime/key_value/key_value_store.hpp>

namespace ronda {

/// Questions that are answered together: of all parts of a value, or to all servers.
struct KeyValueOperation {
  std::size_t unanswered = 0;
  Message failure = {};  ///< of one that has failed
};

/// A worker of a KeyValueStore: sends questions, and finds by its number what an answer belongs to.
class KeyValueWorker {
 public:
  using Operation = std::shared_ptr<KeyValueOperation>;

  /// @param workers  the group of these alone
  KeyValueWorker(const Communicator& communicator, const Communicator& workers, const Roles& roles,
                 const KeyValueOptions& options);
  KeyValueWorker(const KeyValueWorker&) = delete;
  ~KeyValueWorker();

  void init(std::span<const KeyValueStore::Value> values);
  [[nodiscard]] Operation push(std::string_view key, std::span<const float> gradient);
  [[nodiscard]] Operation pull(std::string_view key, std::span<float> out);
  [[nodiscard]] std::uint64_t version(std::string_view key);
  void barrier();
  void close();
  /// Instead of `close`, after a failure: the others receive the reason. Waits at most two seconds.
  void leave(const std::string& why) noexcept;

  void poll();
  /// Throws the operation's error if it failed.
  void wait(const KeyValueOperation& operation);
  /// Throws the operation's error if it has failed.
  static void require_success(const KeyValueOperation& operation);
  [[nodiscard]] KeyValueStatistics statistics() const;

 private:
  struct Part {
    std::uint32_t number = 0;  ///< of all parts of the store
    PlacedPart place;
    std::uint64_t version = 0;  ///< the pulled version
  };
  struct Key {
    std::size_t count = 0;
    std::vector<Part> parts;
  };
  struct Question {
    Operation operation;
    Part* part = nullptr;  ///< the pulled part
    std::span<std::byte> out = {};
    std::size_t pushed = 0;  ///< bytes
  };
  struct Connection {
    Connection(const Communicator& communicator, int server) : channel(communicator, server) {}
    Channel channel;
    std::size_t unanswered = 0;
    std::uint64_t probe = 0;  ///< last probe, without a reply, and without an answer since; 0: none
    std::string text = {};    ///< of a failure that is being received
  };

  void require_open() const;
  [[nodiscard]] Key& find(std::string_view key, const char* call);
  [[nodiscard]] Key& find(std::string_view key, std::size_t count, const char* call);
  void require_new(std::span<const KeyValueStore::Value> values) const;
  void add_keys(std::span<const KeyValueStore::Value> values);
  void send_values(std::span<const KeyValueStore::Value> values);
  void ask(int server, MessageHeader header, Question question, std::span<const std::byte> bytes = {},
           std::shared_ptr<const void> keeper = nullptr);
  [[nodiscard]] bool take_answer(Connection& connection);
  [[nodiscard]] std::span<std::byte> memory_for(Connection& connection, const MessageHeader& answer);
  [[nodiscard]] bool answered() const noexcept { return questions_.empty(); }
  void wait_until(FunctionRef<bool()> done);
  void reply_to_probes();

  Communicator communicator_, workers_;
  Roles roles_;
  PartPlacement placement_;
  std::uint32_t parts_ = 0;
  std::map<std::string, Key, std::less<>> keys_;
  std::deque<Connection> connections_;  ///< by server
  std::unordered_map<std::uint64_t, Question> questions_;
  std::uint64_t last_question_ = 0;
  std::size_t ahead_bytes_;  ///< see KeyValueOptions
  std::size_t pushing_ = 0;  ///< bytes of unanswered pushes
  std::uint64_t dropped_ = 0;
  Message failure_;  ///< the first
  std::vector<std::byte> scratch_;
  bool closed_ = false, leaving_ = false;
};

}  // namespace ronda
