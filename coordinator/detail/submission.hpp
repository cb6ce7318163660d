#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ronda/coordinator/detail/descriptor.hpp>

namespace ronda {

/// All that one rank knows of one name: what was submitted last, and how far that is. Kept from one use of the name to
/// the next, so that submitting it again takes nothing from the heap.
class Submission {
 public:
  explicit Submission(std::string name) : name_(std::move(name)) {}

  [[nodiscard]] const std::string& name() const noexcept { return name_; }

  // For who submitted it, from any thread.

  [[nodiscard]] bool finished(std::uint64_t number) const noexcept {
    return finished_.load(std::memory_order_acquire) >= number;
  }
  /// Returns when use `number` is done; throws what it ended with.
  void wait(std::uint64_t number) const;
  /// Throws what use `number` ended with, if it failed.
  void require_success(std::uint64_t number) const;
  [[nodiscard]] bool has_failed(std::uint64_t number) const;

  // For the coordinator's thread, from `take` of the desk until it ends it.

  [[nodiscard]] const Descriptor& descriptor() const noexcept { return descriptor_; }
  [[nodiscard]] std::span<const Tensor> tensors() const noexcept { return tensors_; }
  void succeed() noexcept { end(); }
  void fail(std::exception_ptr error) noexcept;

  [[nodiscard]] std::uint64_t version() const noexcept { return version_; }  ///< of the descriptor

  std::optional<std::uint32_t> id;  ///< in the name table
  std::uint64_t checked = 0;        ///< the descriptor of this version is the same as
  std::uint64_t checked_with = 0;   ///< the table's of this one
  double since = 0;                 ///< when the coordinator took it
  std::size_t pieces_left = 0;      ///< to be reduced before it is done
  int color = 0, key = 0;           ///< of a split
  std::shared_ptr<void> result;     ///< of a split: what came of it

 private:
  friend class SubmissionDesk;
  void end() noexcept;

  const std::string name_;
  Descriptor descriptor_;
  std::uint64_t version_ = 0;
  std::vector<Tensor> tensors_;
  std::uint64_t submitted_ = 0;             ///< how often; the desk's
  std::uint32_t refused_ = 0;               ///< calls that were not submitted, since the last reset; the desk's
  std::uint64_t forgotten_at_ = 0;          ///< the failed use at which `refused_` was reset; the desk's
  std::atomic<std::uint64_t> finished_{0};  ///< of these
  std::atomic<bool> has_failures_{false};
  mutable std::mutex failures_door_;
  std::vector<std::pair<std::uint64_t, std::exception_ptr>> failures_;
};

/// A CommunicationError, for submissions.
[[nodiscard]] std::exception_ptr communication_error(const std::string& text);

/// Wakes the coordinator's thread where there is something to do for any of its groups.
class Bell {
 public:
  void ring() {
    {
      const std::lock_guard door(door_);
      rung_ = true;
    }
    wake_.notify_one();
  }
  /// Whether it was rung since the last time.
  [[nodiscard]] bool heard();
  /// Returns when it is rung, or was since `heard`; at the latest after so many seconds.
  void wait(double seconds);

 private:
  std::mutex door_;
  std::condition_variable wake_;
  bool rung_ = false;
};

/// Where any thread hands tensors in, and the coordinator's thread takes them. All functions may be called by any
/// thread but those that say otherwise.
class SubmissionDesk {
 public:
  explicit SubmissionDesk(std::shared_ptr<Bell> bell) : bell_(std::move(bell)) {}

  struct Wish {
    NamedKind kind = NamedKind::allreduce;
    ReduceOp op = ReduceOp::sum;
    int root = 0;
    int color = 0, key = 0;
  };
  struct Receipt {
    std::shared_ptr<Submission> submission;
    std::uint64_t number = 0;
  };
  /// Throws LogicError where the name is in flight already, after `join` and `close`; what the coordinator ended with,
  /// where it has failed.
  /// @param fill  makes the tensors ready, once it is known that they are taken; does not throw
  Receipt submit(std::string_view name, const Wish& wish, std::span<const Tensor> tensors,
                 const std::function<void()>& fill = {});
  /// A call with this name failed on this rank, and is not submitted. The same call on other ranks waits for it, and
  /// must not match this rank's next call. So ranks compare the number of such calls: if it differs, the next call
  /// fails on all ranks, and the counts are reset.
  void note_refused(std::string_view name);

  /// Nothing more comes until all ranks have joined. Returns once they have: the last of them.
  int join();
  /// Nothing more comes. Returns once all ranks have closed.
  void close();
  /// This rank goes away, and waits for nobody.
  void leave(std::string why) noexcept;

  // For the coordinator's thread.

  /// Appends what was submitted since the last time.
  void take(std::vector<Submission*>& into);
  /// What this rank has to announce besides tensors, where it has nothing in flight any more; `none_in_flight` says so.
  /// The same again until all have heard it.
  [[nodiscard]] std::optional<Announcement> word(bool none_in_flight);
  void word_was_heard(Announcement::What what);
  /// Whether `word` has something.
  [[nodiscard]] bool has_word(bool none_in_flight);
  void end_join(int last);
  void end_close();
  /// Ends everything: what is in flight, and all that comes later, fails with `error`.
  void fail(std::exception_ptr error) noexcept;

 private:
  enum class State : std::uint8_t { open, wanted, announced, done };
  [[nodiscard]] const std::shared_ptr<Submission>& known(std::string_view name);
  static void forget_refused(Submission& submission);
  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>()(text); }
  };
  void require_open(std::string_view name) const;
  [[nodiscard]] std::optional<Announcement::What> next_word(bool none_in_flight) const noexcept;

  std::shared_ptr<Bell> bell_;
  std::mutex door_;
  std::condition_variable changed_;  ///< what `join` and `close` wait for
  std::unordered_map<std::string, std::shared_ptr<Submission>, TextHash, std::equal_to<>> by_name_;
  std::vector<Submission*> arrived_;
  std::size_t being_filled_ = 0;  ///< that will arrive
  State joining_ = State::open, closing_ = State::open, leaving_ = State::open;
  std::string why_leaving_;
  int last_to_join_ = -1;
  std::exception_ptr failure_;
  std::atomic<bool> has_word_{false};  ///< so that the other cycles need no lock
};

}  // namespace ronda
