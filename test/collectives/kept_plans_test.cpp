// Allreduces for once that come again: planned the first time, right every time.
#include "support/rank_case.hpp"

#include <ronda/collectives/communicator.hpp>
#include <ronda/collectives/group/group.hpp>
#include <ronda/core/error.hpp>

#include <memory>
#include <vector>

namespace ronda::kept_plans_test {
namespace {

RANK_CASE("an allreduce for once that comes again is planned once, wherever its numbers lie") {
  Communicator all = test::world().communicator().split(0, test::world().rank());
  const int ranks = all.size();
  for (int repetition = 0; repetition < 5; ++repetition) {
    std::vector<float> values(20'000, static_cast<float>(all.rank() + repetition));
    const std::uint64_t before = all.group().members().ledger().number;
    all.allreduce(Tensor(std::span(values)));
    const auto sum = static_cast<float>(ranks * (ranks - 1) / 2 + repetition * ranks);
    CHECK(values == std::vector<float>(values.size(), sum));
    if (repetition > 0 && ranks > 1) CHECK(all.group().members().ledger().number == before + 1);
  }
}

RANK_CASE("more kinds than are kept, of several types and operations") {
  Communicator all = test::world().communicator().split(0, test::world().rank());
  const int ranks = all.size();
  for (int repetition = 0; repetition < 3; ++repetition)
    for (std::size_t kind = 0; kind < 20; ++kind) {
      std::vector<std::int64_t> values(1000 + kind, all.rank() + 1);
      const ReduceOp op = kind % 2 == 0 ? ReduceOp::sum : ReduceOp::maximum;
      all.allreduce(Tensor(std::span(values)), op);
      CHECK(values.back() == (op == ReduceOp::sum ? ranks * (ranks + 1) / 2 : ranks));
      CHECK(values.front() == values.back());
    }
}

RANK_CASE("ranks that disagree on a new one get an error, and go on") {
  Communicator all = test::world().communicator().split(0, test::world().rank());
  if (all.size() == 1) return;
  std::vector<float> values(all.rank() == 0 ? 5000 : 6000, 1.0F), equal(7000, 1.0F);
  CHECK_THROWS_AS(all.allreduce(Tensor(std::span(values))), LogicError);
  all.allreduce(Tensor(std::span(equal)));
  CHECK(equal.back() == static_cast<float>(all.size()));
}

RANK_CASE("what is kept goes with the group") {
  std::weak_ptr<Members> seen;
  {
    Communicator part = test::world().communicator().split(0, 0);
    seen = part.group().shared_members();
    std::vector<float> values(20'000, 1.0F);
    part.allreduce(Tensor(std::span(values)));
  }
  CHECK(seen.expired());
}

}  // namespace
}  // namespace ronda::kept_plans_test
