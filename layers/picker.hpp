#pragma once
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include <ronda/core/error.hpp>

namespace ronda {

/// One implementation of an operation. `run` executes it once on its own memory, for timing. `run` is empty if this
/// processor or library does not support it; the candidate stays in the list, which must be the same on all ranks.
struct Candidate {
  std::string name;
  std::function<void()> run;
  double counts = 1;  ///< factor on its measured time: above 1 if it also slows down other work
};

/// A candidate's `run` that allocates lazily: calls `make` for a pointer to its memory at the first run, then
/// `run(*memory)`. Usually the answer is known, and no candidate runs.
template <class Make, class Run>
std::function<void()> rehearsal(Make make, Run run) {
  return [make, run, memory = decltype(make())()]() mutable {
    if (!memory) memory = make();
    run(*memory);
  };
}

/// Chooses between candidates. A strategy's picker looks in the plan or the cache first. Otherwise it times the
/// candidates on all ranks at once, and all ranks use the one with the least time × counts on rank 0.
class Picker {
 public:
  virtual ~Picker() = default;
  /// The index of the candidate to use, whose `run` is not empty. Collective over the ranks that plan together, which
  /// must ask the same questions in the same order. Throws Error when no candidate can run.
  /// @param question  text with operation, shape and direction; equal questions get equal answers
  virtual std::size_t pick(std::string_view question, std::span<const Candidate> candidates) = 0;
  /// The name of the candidate that `pick` will return, if it was decided before, the same on all ranks; empty
  /// otherwise. If known, the caller need not prepare the other candidates.
  [[nodiscard]] virtual std::string known(std::string_view /*question*/) const { return {}; }
};

/// Takes the first candidate that can run; for tests and for programs without ranks.
class FirstPicker final : public Picker {
 public:
  std::size_t pick(std::string_view question, std::span<const Candidate> candidates) override {
    for (std::size_t i = 0; i < candidates.size(); ++i)
      if (candidates[i].run) return i;
    throw Error("nothing on this machine can do " + std::string(question));
  }
};

}  // namespace ronda
