#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include <ronda/core/buffer.hpp>
#include <ronda/core/message.hpp>
#include <ronda/runtime/key_value/detail/answers.hpp>
#include <ronda/runtime/key_value/detail/part_update.hpp>
#include <ronda/runtime/key_value/detail/push_queue.hpp>
#include <ronda/runtime/key_value/key_value_store.hpp>

namespace ronda {

/// Shared by the parts of a server; outlives them.
struct ServedTogether {
  KeyValueOptions options;
  std::vector<bool> open;  ///< by worker: it has not closed
  Answers& answers;
  KeyValueStatistics& statistics;
  MakePartUpdate make_update = replacing_update();
  PushesAhead ahead{answers, options.ahead_bytes, open.size()};
  GradientPool pool = {};

  [[nodiscard]] int workers() const noexcept { return static_cast<int>(open.size()); }
};

/// A part of a value on its server: applies the gradients that its PushQueue takes, and answers pulls. Knows no
/// messages. In rounds a push is answered on arrival, or when it is no longer too far ahead (PushesAhead);
/// asynchronous, when it is applied.
class ServedPart {
 public:
  /// @param values  the first ones, `part.count` of them
  ServedPart(ServedTogether& together, const KeyPart& part, std::span<const float> values);
  ServedPart(const ServedPart&) = delete;

  /// Each is answered, now or by a later call. Throw CommunicationError if a worker waits for a round that can no
  /// longer end.
  void push(PushedGradient gradient);
  void pull(const Asked& asked);
  void worker_closed(int worker);
  /// Removes and returns the unanswered operations; also after an error from any of these functions.
  [[nodiscard]] std::vector<Asked> take_waiting();
  /// A worker that is not answered, and why; empty if all are.
  [[nodiscard]] Message why_waiting() const;

 private:
  [[nodiscard]] bool asynchronous() const noexcept { return together_.options.asynchronous; }
  void note_wait(int worker);
  void move_on();
  void apply();
  [[nodiscard]] const float* mean_of(std::span<PushedGradient* const> gradients) const;
  void require_possible() const;
  [[nodiscard]] Message why_held(int worker) const;
  [[nodiscard]] Message why_incomplete(int worker) const;

  ServedTogether& together_;
  KeyPart part_;
  Buffer values_;
  std::unique_ptr<PartUpdate> update_;
  PublishedValues published_;
  PushQueue queue_;
  std::vector<Fate> fates_;
  std::vector<Asked> waiting_pulls_;
};

}  // namespace ronda
