#pragma once
#include <utility>

#include <ronda/collectives/communicator.hpp>
#include <ronda/runtime/strategy/replica/rank_picker.hpp>

#include "support/ranks.hpp"

namespace ronda::test {

/// What the ranks of this program have timed together so far. Timing the same questions for every run took a third of
/// the tests' time; which candidate runs is no matter of the strategies: test/layers has each of them.
inline Picks& timed_together() {
  static Picks picks;
  return picks;
}

/// `wanted`, and what has been timed before.
inline Picks with_timed(Picks wanted) {
  wanted.insert(timed_together().begin(), timed_together().end());
  return wanted;
}

/// Of a run by these ranks, which answered all questions alike. What a part of the ranks has timed, the others do not
/// know.
inline void keep_timed(const Communicator& communicator, const Picks& picks) {
  if (communicator.size() == world().size()) timed_together().insert(picks.begin(), picks.end());
}

}  // namespace ronda::test
