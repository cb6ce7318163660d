#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ronda/core/buffer.hpp>
#include <ronda/core/function_ref.hpp>
#include <ronda/core/message.hpp>
#include <ronda/runtime/key_value/detail/answers.hpp>
#include <ronda/runtime/key_value/detail/gradient_pool.hpp>
#include <ronda/runtime/key_value/detail/part_update.hpp>
#include <ronda/runtime/key_value/detail/pushes_ahead.hpp>
#include <ronda/runtime/key_value/key_value_store.hpp>

namespace ronda {

struct PushedGradient {
  Asked asked;
  std::uint64_t version = 0;  ///< of the values that the worker has pulled
  GradientPool::Piece elements;
};

/// Shared by the parts of a server; outlives them.
struct ServedTogether {
  KeyValueOptions options;
  std::vector<bool> open;  ///< by worker: it has not closed
  Answers& answers;
  KeyValueStatistics& statistics;
  MakePartUpdate make_update = replacing_update();
  PushesAhead ahead{answers, options.ahead_bytes, open.size()};

  [[nodiscard]] int workers() const noexcept { return static_cast<int>(open.size()); }
};

/// A part of a value on its server: when gradients are applied, and pulls answered. Knows no messages.
class ServedPart {
 public:
  /// @param values  the first ones, `part.count` of them
  ServedPart(ServedTogether& together, const KeyPart& part, std::span<const float> values);
  ServedPart(const ServedPart&) = delete;
  virtual ~ServedPart() = default;

  [[nodiscard]] const KeyPart& part() const noexcept { return part_; }
  /// Each is answered, now or by a later call.
  virtual void push(PushedGradient gradient) = 0;
  virtual void pull(const Asked& asked) = 0;
  /// A worker has closed. Throws CommunicationError if another worker waits for a round that can no longer end.
  virtual void worker_closed() = 0;
  /// Removes and returns the unanswered operations; also after an error from any of these functions.
  [[nodiscard]] virtual std::vector<Asked> take_waiting() = 0;
  /// A worker that is not answered, and why; empty if all are.
  [[nodiscard]] virtual Message why_waiting() const = 0;

 protected:
  [[nodiscard]] ServedTogether& together() noexcept { return together_; }
  [[nodiscard]] const ServedTogether& together() const noexcept { return together_; }
  [[nodiscard]] std::uint64_t version() const noexcept { return version_; }  ///< updates so far
  void update(const float* gradient);
  /// Answers those of `pulls` that may have the values now, and takes them out; one whose answer throws stays.
  void answer_each(std::vector<Asked>& pulls, FunctionRef<bool(const Asked& pull)> may_have);

 private:
  void answer(const Asked& pull);

  ServedTogether& together_;
  KeyPart part_;
  Buffer values_;
  std::unique_ptr<PartUpdate> update_;
  std::shared_ptr<float[]> published_;  ///< a copy of the values, which pulls have sent or send
  bool published_is_new_ = false;       ///< it has the present version
  std::uint64_t version_ = 0;
};

/// Applies gradients in rounds, or as they come, as the options say.
[[nodiscard]] std::unique_ptr<ServedPart> make_served_part(ServedTogether& together, const KeyPart& part,
                                                           std::span<const float> values);

}  // namespace ronda
