// One rank alone runs out of memory when it plans, or throws between two plans: all ranks hear of it, and what they
// plan afterwards is not mixed up.
#include "support/catch.hpp"
#include "support/message.hpp"
#include "support/ranks.hpp"

#include <ronda/collectives/communicator.hpp>
#include <ronda/coordinator/coordinator.hpp>
#include <ronda/core/error.hpp>

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <optional>
#include <string>
#include <vector>

namespace ronda::one_fails_test {
namespace {

/// Leaves this process so many bytes more of addresses.
class MemoryLimit {
 public:
  explicit MemoryLimit(std::size_t more) {
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    ::getrlimit(RLIMIT_AS, &before_);
    rlimit limit = before_;
    limit.rlim_cur = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + more;
    ::setrlimit(RLIMIT_AS, &limit);
  }
  MemoryLimit(const MemoryLimit&) = delete;
  ~MemoryLimit() { ::setrlimit(RLIMIT_AS, &before_); }

 private:
  rlimit before_{};
};

TEST_CASE("a rank alone that has no memory for a plan fails it on all, and the next ones are right") {
  Communicator all = test::world().communicator();
  const int ranks = all.size();
  std::vector<std::vector<float>> large(3, std::vector<float>(std::size_t{12} << 20));
  const auto plan = [&] {
    AllreduceSpec spec{{}, ReduceOp::sum, AllreduceAlgorithm::doubling, "too large"};
    for (auto& values : large) spec.tensors.emplace_back(std::span(values));
    static_cast<void>(all.plan(spec));
  };
  std::string why;
  {
    std::optional<MemoryLimit> limit;
    if (all.rank() == 1) limit.emplace(std::size_t{24} << 20);
    why = test::message_of<Error>(plan);
  }
  CHECK(why.find("rank 1") == 0);
  std::vector<float> first(10'000, 1.0F), second(20'000, 2.0F);
  const auto one = all.plan(AllreduceSpec{{Tensor(std::span(first))}, ReduceOp::sum, AllreduceAlgorithm::ring, "one"});
  const auto two = all.plan(AllreduceSpec{{Tensor(std::span(second))}, ReduceOp::sum, AllreduceAlgorithm::ring, "two"});
  const Event a = all.rank() == 0 ? one->start() : Event(), b = two->start(),
              c = all.rank() == 0 ? Event() : one->start();
  a.wait();
  b.wait();
  c.wait();
  CHECK(first == std::vector<float>(first.size(), static_cast<float>(ranks)));
  CHECK(second == std::vector<float>(second.size(), static_cast<float>(2 * ranks)));
}

TEST_CASE("while a coordinator is open nobody else uses its world") {
  Communicator all = test::world().communicator();
  std::vector<float> values(5000, 1.0F), named(100, 1.0F);
  const auto reduction = all.plan(AllreduceSpec{{Tensor(std::span(values))}, ReduceOp::sum, {}, "test"});
  {
    Coordinator coordinator(all);
    const auto refused = [&](auto&& work) {
      return test::message_of<Error>(work).find("is a coordinator's as long as that is open") != std::string::npos;
    };
    CHECK(refused([&] { all.barrier(); }));
    CHECK(refused([&] { all.allreduce(Tensor(std::span(values))); }));
    CHECK(refused([&] { static_cast<void>(reduction->start()); }));
    CHECK(refused([&] { static_cast<void>(all.split(0, 0)); }));
    CHECK(refused([&] { Coordinator second(all); }));
    coordinator.allreduce("named", Tensor(std::span(named))).wait();
    coordinator.close();
    all.barrier();
  }
  reduction->start().wait();
  CHECK(values.back() == static_cast<float>(all.size()));
  CHECK(named.back() == static_cast<float>(all.size()));
}

}  // namespace
}  // namespace ronda::one_fails_test
