#pragma once
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace ronda {

/// One way to do an operation. `run` does it once on memory of its own, for timing; empty where this processor or
/// library cannot do it (it still has a place in the list, which must be the same on all ranks).
struct Candidate {
  std::string name;
  std::function<void()> run;
  double counts = 1;  ///< its time is multiplied by this: above 1 where it slows others down, which is not timed
};

/// A candidate's `run`: `run(*memory)` on what `make` returns a pointer to, which is called at the first run alone:
/// most days the answer is known.
template <class Make, class Run>
std::function<void()> rehearsal(Make make, Run run) {
  return [make, run, memory = decltype(make())()]() mutable {
    if (!memory) memory = make();
    run(*memory);
  };
}

/// Decides between candidates. The strategy's asks the plan or the cache first, and otherwise times them on all ranks
/// at once and takes rank 0's everywhere, that of the least time × counts.
class Picker {
 public:
  virtual ~Picker() = default;
  /// The index of the candidate to use; it has a `run`. Collective over the ranks that plan together: they ask the same
  /// questions in the same order. Throws Error when no candidate can run.
  /// @param question  names operation, shape and direction; equal questions get equal answers
  virtual std::size_t pick(std::string_view question, std::span<const Candidate> candidates) = 0;
  /// The name of the candidate that `question` will be answered with where that was decided before, the same on all
  /// ranks; empty otherwise. Who knows it need not make the others ready.
  [[nodiscard]] virtual std::string known(std::string_view /*question*/) const { return {}; }
};

/// Takes the first candidate that can run; for tests and for programs without ranks.
class FirstPicker final : public Picker {
 public:
  std::size_t pick(std::string_view question, std::span<const Candidate> candidates) override;
};

}  // namespace ronda
