#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/coordinator/detail/name_table.hpp>
#include <ronda/coordinator/detail/submission.hpp>
#include <ronda/core/function_ref.hpp>

namespace ronda {

/// What this rank has submitted and is not over yet. A submission whose name all ranks know, with the descriptor that
/// it has here, is *ready*: its bit says so to the other ranks. Any other one waits, and may have to be announced.
class InFlight {
 public:
  /// @param table  outlives this object
  InFlight(NameTable& table, int rank) : table_(table), rank_(rank) {}

  /// Takes what has arrived at the desk. Returns how much that was.
  /// @param ends_at_once  for a submission that failed before it came; that one is not in flight
  std::size_t take(SubmissionDesk& desk, double now, FunctionRef<bool(Submission&)> ends_at_once);
  /// After the table or the submissions have changed: gives what is ready its bit, and lists what must be announced.
  void sort_out();

  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  /// A bit by id.
  [[nodiscard]] std::span<const std::uint64_t> ready() const noexcept { return ready_; }
  /// As of the last sort_out.
  [[nodiscard]] std::span<Submission* const> unannounced() const noexcept { return unannounced_; }
  /// The submission of each id; null: this rank has none of that name.
  [[nodiscard]] std::vector<Submission*> by_id();
  /// Whether `predicate` holds for a submission.
  template <class Predicate>
  [[nodiscard]] bool any_of(Predicate&& predicate) const {
    return std::ranges::any_of(waiting_, [&](const Submission* one) { return predicate(*one); }) ||
           std::ranges::any_of(by_id_, [&](const Submission* one) { return one != nullptr && predicate(*one); });
  }

  /// All ranks have this one: it is in flight no longer. Null where this rank has joined.
  Submission* remove(std::uint32_t id);
  /// The name is contested now: its submission waits, without a bit.
  void withdraw(std::uint32_t id);
  /// Ends one that is in flight.
  void fail(Submission& submission, const std::exception_ptr& error);
  /// Ends those of this name that wait.
  void fail_waiting(std::string_view name, const std::exception_ptr& error);
  /// Ends all: `'gradient' cannot be done: ` and why.
  void fail_all(const std::string& why);

 private:
  [[nodiscard]] bool is_ready(Submission& submission) const;
  [[nodiscard]] bool must_announce(const Submission& submission) const;
  Submission* clear(std::uint32_t id);

  NameTable& table_;
  const int rank_;
  std::vector<Submission*> arrived_;      ///< just taken
  std::vector<Submission*> waiting_;      ///< without a bit
  std::vector<Submission*> unannounced_;  ///< of these
  std::vector<std::uint64_t> ready_;
  std::vector<Submission*> by_id_;  ///< whose bits these are
  std::size_t count_ = 0;
};

}  // namespace ronda
