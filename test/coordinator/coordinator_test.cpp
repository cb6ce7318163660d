// The second door: named tensors, in any order, from any thread, over MPI.
#include "support/message.hpp"
#include "support/numbers.hpp"
#include "support/rank_case.hpp"
#include "support/sanitizer.hpp"

#include <ronda/coordinator/coordinator.hpp>
#include <ronda/core/error.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <mutex>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace ronda::coordinator_test {
namespace {

int ranks() { return test::world().size(); }
int rank() { return test::world().rank(); }

Coordinator open(const CoordinatorOptions& options = {}) { return Coordinator(test::world().communicator(), options); }

Tensor tensor_of(std::vector<float>& values) { return Tensor(std::span(values)); }

/// Numbers that differ by rank, tensor and round; sums over few ranks are exact in float32.
float number(std::size_t i, int of_rank, std::size_t tensor, int round) {
  return static_cast<float>(
      (i * 7 + static_cast<std::size_t>(of_rank) * 3 + tensor * 11 + static_cast<std::size_t>(round) * 5) % 101);
}

void fill(std::vector<float>& values, std::size_t tensor, int round) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = number(i, rank(), tensor, round);
}

std::size_t wrong(const std::vector<float>& values, std::size_t tensor, int round) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    float sum = 0;
    for (int of_rank = 0; of_rank < ranks(); ++of_rank) sum += number(i, of_rank, tensor, round);
    wrong += values[i] == sum ? 0 : 1;
  }
  return wrong;
}

/// The text of what `work` throws; empty where it does not.
std::string thrown_by(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

/// `count` tensors in another random order on every rank and in every round, from `threads` threads.
std::size_t wrong_in_rounds(std::size_t count, int rounds, std::size_t threads) {
  Coordinator coordinator = open();
  std::vector<std::vector<float>> tensors;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) {
    tensors.emplace_back(1 + i % 97);
    names.push_back("tensor " + std::to_string(i));
  }
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937 random(static_cast<unsigned>(rank() + 1));
  std::size_t errors = 0;
  for (int round = 0; round < rounds; ++round) {
    std::shuffle(order.begin(), order.end(), random);
    for (std::size_t i = 0; i < count; ++i) fill(tensors[i], i, round);
    std::vector<std::thread> submitters;
    for (std::size_t thread = 0; thread < threads; ++thread)
      submitters.emplace_back([&, thread] {
        std::vector<Ticket> tickets;
        for (std::size_t i = thread; i < count; i += threads)
          tickets.push_back(coordinator.allreduce(names[order[i]], tensor_of(tensors[order[i]])));
        for (const Ticket& ticket : tickets) ticket.wait();
      });
    for (auto& submitter : submitters) submitter.join();
    for (std::size_t i = 0; i < count; ++i) errors += wrong(tensors[i], i, round);
  }
  coordinator.close();
  CHECK(coordinator.statistics().submissions == count * static_cast<std::size_t>(rounds));
  return errors;
}

RANK_CASE("tensors in different orders on each rank, from four threads, give exact sums") {
  CHECK(wrong_in_rounds(100, 20, 4) == 0);
}

RANK_CASE("a thousand tensors a round, many rounds") {
  CHECK(wrong_in_rounds(1000, test::sanitized ? 10 : 50, 4) == 0);
}

RANK_TYPES_CASE("tensors of every size, also none and more than a batch", "", float, double, std::int8_t,
                std::int64_t) {
  Coordinator coordinator = open({.batch_bytes = 65536});
  for (const std::size_t count :
       {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{65536}, std::size_t{100'003}}) {
    std::vector<TestType> values(count);
    const auto small = [](std::size_t i, int of_rank) {
      return static_cast<TestType>((i + static_cast<std::size_t>(of_rank)) % 13);
    };
    for (std::size_t i = 0; i < count; ++i) values[i] = small(i, rank());
    coordinator.allreduce("values", Tensor(std::span(values))).wait();
    std::size_t errors = 0;
    for (std::size_t i = 0; i < count; ++i) {
      TestType sum = 0;
      for (int of_rank = 0; of_rank < ranks(); ++of_rank) sum = static_cast<TestType>(sum + small(i, of_rank));
      errors += values[i] == sum ? 0 : 1;
    }
    INFO(count << " elements");
    CHECK(errors == 0);
  }
  coordinator.close();
}

RANK_CASE("each operation, broadcasts and barriers") {
  Coordinator coordinator = open();
  std::vector<float> sum{1.0F + static_cast<float>(rank())}, mean = sum, least = sum, most = sum, product{2};
  std::vector<std::int32_t> bits{0xF0 | (1 << rank())};
  std::vector<double> from_last{static_cast<double>(rank()), 0.5};
  std::vector<float> mine{static_cast<float>(rank()), -0.0F}, all(2 * static_cast<std::size_t>(ranks()), 7.0F);
  const std::vector<Ticket> tickets{
      coordinator.allreduce("sum", tensor_of(sum)),
      coordinator.allreduce("mean", tensor_of(mean), ReduceOp::mean),
      coordinator.allreduce("least", tensor_of(least), ReduceOp::minimum),
      coordinator.allreduce("most", tensor_of(most), ReduceOp::maximum),
      coordinator.allreduce("product", tensor_of(product), ReduceOp::product),
      coordinator.allreduce("bits", Tensor(std::span(bits)), ReduceOp::bitwise_and),
      coordinator.broadcast("last", Tensor(std::span(from_last)), ranks() - 1),
      coordinator.allgather("all", tensor_of(mine), tensor_of(all)),
      coordinator.barrier("here"),
  };
  for (const Ticket& ticket : tickets) ticket.wait();
  const auto n = static_cast<float>(ranks());
  CHECK(sum[0] == n * (n + 1) / 2);
  CHECK(mean[0] == (n + 1) / 2);
  CHECK(least[0] == 1);
  CHECK(most[0] == n);
  CHECK(product[0] == static_cast<float>(1 << ranks()));
  CHECK(bits[0] == (ranks() == 1 ? 0xF1 : 0xF0));
  CHECK(from_last[0] == ranks() - 1);
  CHECK(from_last[1] == 0.5);
  for (std::size_t r = 0; r < static_cast<std::size_t>(ranks()); ++r) {
    CHECK(all[2 * r] == static_cast<float>(r));
    CHECK(std::signbit(all[2 * r + 1]));  // bit for bit
  }
  std::vector<float> short_by_one(all.size() - 1);
  CHECK_THROWS_AS(coordinator.allgather("all", tensor_of(mine), tensor_of(short_by_one)), LogicError);
  coordinator.close();
}

RANK_CASE("a group of tensors of several types is done together") {
  Coordinator coordinator = open();
  std::vector<float> a{1, 2};
  std::vector<std::int64_t> b{3};
  const std::vector<Tensor> group{Tensor(std::span(a)), Tensor(std::span(b))};
  for (int round = 0; round < 3; ++round) {
    a = {1, 2};
    b = {3};
    coordinator.allreduce("group", group).wait();
    CHECK(a == std::vector<float>{1.0F * static_cast<float>(ranks()), 2.0F * static_cast<float>(ranks())});
    CHECK(b[0] == 3 * ranks());
  }
  coordinator.close();
}

RANK_CASE("a name may change its shape where all ranks do") {
  Coordinator coordinator = open();
  for (int round = 0; round < 6; ++round) {
    std::vector<float> values(round % 2 == 0 ? 10 : 3);
    fill(values, 0, round);
    coordinator.allreduce("batch", tensor_of(values)).wait();
    CHECK(wrong(values, 0, round) == 0);
  }
  coordinator.close();
}

RANK_CASE("a call that fails on one rank alone is not taken for its next one, which fails on all ranks") {
  if (ranks() == 1) return;
  Coordinator coordinator = open();
  std::vector<float> values(3);
  const auto submit = [&](float value) {
    values.assign(3, value);
    coordinator.allreduce("gradient", tensor_of(values)).wait();
  };
  submit(1);
  const Tensor without_memory({Shape{3}, DType::float32, {}}, nullptr);
  const bool fails = rank() == 0;
  if (fails) CHECK_THROWS_AS(coordinator.allreduce("gradient", without_memory), InputError);
  const std::string why = thrown_by([&] { submit(2); });  // the second call of rank 0, the first of the others
  CHECK(why.find("after 1 call that failed on that rank alone") != std::string::npos);
  for (int round = 0; round < 2; ++round) {
    submit(4);
    CHECK(values[0] == 4.0F * static_cast<float>(ranks()));
  }
  CHECK_THROWS_AS(coordinator.allreduce("gradient", without_memory), InputError);  // on all ranks alike
  submit(5);
  CHECK(values[0] == 5.0F * static_cast<float>(ranks()));
  coordinator.close();
}

RANK_CASE("what ranks submit differently fails on all of them, and names who has what") {
  Coordinator coordinator = open();
  std::vector<float> floats(6);
  std::vector<double> doubles(6);
  const bool odd = rank() == ranks() - 1 && ranks() > 1;
  const Tensor wide({Shape{2, 3}, DType::float32, {}}, floats.data()),
      high({Shape{3, 2}, DType::float32, {}}, floats.data());
  const auto shape = thrown_by([&] { coordinator.allreduce("shape", odd ? high : wide).wait(); });
  const auto type =
      thrown_by([&] { coordinator.allreduce("type", odd ? Tensor(std::span(doubles)) : tensor_of(floats)).wait(); });
  const auto operation = thrown_by(
      [&] { coordinator.allreduce("operation", tensor_of(floats), odd ? ReduceOp::maximum : ReduceOp::sum).wait(); });
  const auto kind = thrown_by([&] {
    (odd ? coordinator.broadcast("kind", tensor_of(floats)) : coordinator.allreduce("kind", tensor_of(floats))).wait();
  });
  if (ranks() == 1) {
    CHECK((shape + type + operation + kind).empty());
  } else {
    const auto& hosts = test::world().communicator().topology().hosts;
    const std::string last = "rank " + std::to_string(ranks() - 1) + " on " + hosts.back();
    CHECK_THAT(shape, Contains("'shape'") && Contains("rank 0 on " + hosts[0]) && Contains("float32 (2, 3)") &&
                          Contains(last + ": sum of float32 (3, 2)"));
    CHECK_THAT(type, Contains("'type'") && Contains("float32 (6)") && Contains(last + ": sum of float64 (6)"));
    CHECK_THAT(operation, Contains("'operation'") && Contains("sum of") && Contains(last + ": max of"));
    CHECK_THAT(kind, Contains("'kind'") && Contains(last + ": broadcast from rank 0"));
  }
  floats.assign(6, 1);  // and the coordinator goes on, with these names too
  coordinator.allreduce("shape", wide).wait();
  CHECK(floats[0] == static_cast<float>(ranks()));
  coordinator.close();
}

RANK_CASE("what some ranks do not submit is told, then fails, with its name and theirs") {
  if (ranks() == 1) return;
  std::mutex door;
  std::vector<std::string> warnings;
  CoordinatorOptions options{.missing_warning = 0.1, .missing_limit = 1};
  options.on_warning = [&](const std::string& text) {
    const std::lock_guard lock(door);
    warnings.push_back(text);
  };
  Coordinator coordinator = open(options);
  std::vector<float> values(3);
  std::string error;
  if (rank() == 1)
    std::this_thread::sleep_for(std::chrono::milliseconds(1300));
  else
    error = thrown_by([&] { coordinator.allreduce("lonely", tensor_of(values)).wait(); });
  coordinator.barrier("afterwards").wait();
  const auto& hosts = test::world().communicator().topology().hosts;
  if (rank() != 1)
    CHECK_THAT(error,
               Contains("'lonely'") && Contains("sum of float32 (3)") && Contains("not by rank 1 on " + hosts[1]));
  const std::lock_guard lock(door);
  CHECK(std::any_of(warnings.begin(), warnings.end(), [&](const std::string& text) {
    return text.find("'lonely'") != std::string::npos && text.find("not by rank 1") != std::string::npos;
  }));
  coordinator.close();
}

RANK_CASE("a shape that only some ranks submit leaves the old one in force once it has been given up") {
  if (ranks() == 1) return;
  Coordinator coordinator = open({.missing_limit = 1});
  std::vector<float> usual(3, 1.0F), longer(5);
  coordinator.allreduce("x", tensor_of(usual)).wait();
  if (rank() == 0)
    CHECK_THAT(thrown_by([&] { coordinator.allreduce("x", tensor_of(longer)).wait(); }), Contains("not by rank 1"));
  else
    std::this_thread::sleep_for(std::chrono::milliseconds(700));
  coordinator.barrier("afterwards").wait();
  if (rank() != 0)
    CHECK_THAT(thrown_by([&] { coordinator.allreduce("x", tensor_of(usual)).wait(); }), Contains("gave it up"));
  std::ranges::fill(usual, 1.0F);
  coordinator.allreduce("x", tensor_of(usual)).wait();
  CHECK(usual == std::vector<float>(3, static_cast<float>(ranks())));
  longer.assign(5, 1.0F);
  coordinator.allreduce("x", tensor_of(longer)).wait();
  CHECK(longer == std::vector<float>(5, static_cast<float>(ranks())));
  coordinator.close();
}

RANK_CASE("ranks that join or close wait for the others no longer than for a tensor") {
  if (ranks() == 1) return;
  const std::function<void(Coordinator&)> words[] = {[](Coordinator& one) { one.join(); },
                                                     [](Coordinator& one) { one.close(); }};
  const std::string said[] = {" joined, and for 1 s not rank 1 on ",
                              " closed the coordinator, and for 1 s not rank 1 on "};
  for (std::size_t i = 0; i < std::size(words); ++i) {
    std::atomic<int> warnings = 0;
    CoordinatorOptions options{.missing_warning = 0.2, .missing_limit = 1};
    options.on_warning = [&](const std::string&) { ++warnings; };
    Coordinator coordinator = open(options);
    std::vector<float> values(3);
    std::string error;
    for (int step = 0; step < 3; ++step) coordinator.allreduce("x", tensor_of(values)).wait();
    if (rank() != 1)
      error = thrown_by([&] { words[i](coordinator); });
    else
      error = thrown_by([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(1700));
        coordinator.barrier("late").wait();
      });
    CHECK_THAT(error, Contains("rank 0 on ") && Contains(said[i]));
    CHECK(warnings > 0);
  }
}

RANK_CASE("ranks that have joined count as zeros until all have") {
  Coordinator coordinator = open();
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (int step = 0; step <= rank(); ++step) {  // rank r has r + 1 steps
      std::vector<float> sum{1}, mean{static_cast<float>(ranks())}, least{static_cast<float>(rank())}, product{2};
      const Ticket one = coordinator.allreduce("sum", tensor_of(sum));
      const Ticket two = coordinator.allreduce("mean", tensor_of(mean), ReduceOp::mean);
      const Ticket three = coordinator.allreduce("least", tensor_of(least), ReduceOp::minimum);
      const Ticket four = coordinator.allreduce("product", tensor_of(product), ReduceOp::product);
      for (const Ticket& ticket : {one, two, three, four}) ticket.wait();
      const int left = ranks() - step;
      CHECK(sum[0] == static_cast<float>(left));
      CHECK(mean[0] == static_cast<float>(left));
      CHECK(least[0] == static_cast<float>(step));
      CHECK(product[0] == static_cast<float>(1 << left));
    }
    CHECK(coordinator.join() == ranks() - 1);
  }
  coordinator.close();
}

RANK_CASE("a broadcast from a rank that has joined fails") {
  if (ranks() == 1) return;
  Coordinator coordinator = open();
  std::vector<float> values{1};
  coordinator.broadcast("model", tensor_of(values)).wait();
  if (rank() != 0)
    CHECK_THAT(thrown_by([&] { coordinator.broadcast("model", tensor_of(values)).wait(); }),
               Contains("rank 0") && Contains("has joined"));
  coordinator.join();
  coordinator.close();
}

RANK_CASE("groups of ranks have coordinators of their own, beside the whole one") {
  Coordinator all = open();
  Coordinator halves = all.split("halves", rank() % 2, rank());
  Coordinator pairs = all.split("pairs", rank() / 2, -rank());
  CHECK(pairs.size() == std::min(2, ranks() - rank() / 2 * 2));
  for (int round = 0; round < 20; ++round) {
    std::vector<float> a{static_cast<float>(rank())}, b = a, c = a;
    const Ticket first = rank() % 2 == 0 ? all.allreduce("x", tensor_of(a)) : pairs.allreduce("x", tensor_of(c));
    const Ticket second = halves.allreduce("x", tensor_of(b));
    const Ticket third = rank() % 2 == 0 ? pairs.allreduce("x", tensor_of(c)) : all.allreduce("x", tensor_of(a));
    for (const Ticket& ticket : {first, second, third}) ticket.wait();
    const int sum_of_ranks = ranks() * (ranks() - 1) / 2;
    float of_half = 0, of_pair = 0;
    for (int other = 0; other < ranks(); ++other) {
      if (other % 2 == rank() % 2) of_half += static_cast<float>(other);
      if (other / 2 == rank() / 2) of_pair += static_cast<float>(other);
    }
    CHECK(a[0] == static_cast<float>(sum_of_ranks));
    CHECK(b[0] == of_half);
    CHECK(c[0] == of_pair);
  }
  pairs.close();
  halves.close();
  all.close();
}

RANK_CASE("a group's coordinator names ranks as in the world") {
  Coordinator all = open();
  Coordinator reversed = all.split("reversed", 0, -rank());
  std::vector<float> values(rank() == ranks() - 1 ? 5 : 4);
  const Ticket ticket = reversed.allreduce("x", tensor_of(values));
  const auto& hosts = test::world().communicator().topology().hosts;
  if (ranks() > 1)
    CHECK_THAT(test::message_of<Error>([&] { ticket.wait(); }),
               Contains("rank " + std::to_string(ranks() - 1) + " on " + hosts.back() + ": sum of float32 (5)"));
  reversed.close();
  all.close();
}

RANK_CASE("a group's coordinator may be closed and dropped while the whole one goes on") {
  Coordinator all = open();
  for (int round = 0; round < (test::sanitized ? 5 : 20); ++round) {
    std::vector<float> values(1000, 1.0F), part(10, 1.0F);
    std::optional<Coordinator> half(all.split("halves", rank() % 2, rank()));
    const Ticket ticket = all.allreduce("x", tensor_of(values));
    half->allreduce("x", tensor_of(part)).wait();
    std::optional<Coordinator> inside(half->split("inside", 0, rank()));  // ends with the one that it is split off
    half->close();
    half.reset();
    inside.reset();
    ticket.wait();
    CHECK(values == std::vector<float>(values.size(), static_cast<float>(ranks())));
  }
  all.close();
}

RANK_CASE("wrong use is told at once") {
  Coordinator coordinator = open();
  std::vector<float> values(3);
  std::vector<float> others(3);
  CHECK_THAT(thrown_by([&] { coordinator.allreduce("", tensor_of(values)); }), Contains("needs a name"));
  CHECK_THAT(thrown_by([&] { coordinator.broadcast("a", tensor_of(values), ranks()); }), Contains("names rank"));
  CHECK_THAT(thrown_by([&] { coordinator.allreduce("a", tensor_of(values), ReduceOp::bitwise_and); }),
             Contains("integers"));
  const Tensor far(TensorDesc{Shape{3}, DType::float32, {}}, reinterpret_cast<std::byte*>(values.data()),
                   Device{DeviceKind::cuda, 0});
  CHECK_THAT(thrown_by([&] { coordinator.allreduce("far", far); }), Contains("host's memory"));
  CHECK_THAT(thrown_by([&] { coordinator.allgather("far", far, far); }), Contains("'far'"));
  CHECK_THAT(thrown_by([&] {
               coordinator.allreduce("a", Tensor({Shape{3}, DType::float32, {}}, nullptr));
             }),
             Contains("no memory"));
  if (ranks() > 1 && rank() == 0) {  // the other ranks come only after this
    const Ticket ticket = coordinator.allreduce("twice", tensor_of(values));
    CHECK_THAT(thrown_by([&] { coordinator.allreduce("twice", tensor_of(others)); }), Contains("'twice'"));
    coordinator.barrier("go").wait();
    ticket.wait();
  } else if (ranks() > 1) {
    coordinator.barrier("go").wait();
    coordinator.allreduce("twice", tensor_of(values)).wait();
  }
  CHECK_THAT(thrown_by([&] { static_cast<void>(coordinator.split("parts", -1, 0)); }), Contains("less than 0"));
  coordinator.close();
  CHECK_THAT(thrown_by([&] { coordinator.allreduce("late", tensor_of(values)); }), Contains("closed"));
  std::vector<float> all(values.size() * static_cast<std::size_t>(ranks()), 7.0F);
  const auto untouched = all;
  CHECK_THAT(thrown_by([&] { coordinator.allgather("late", tensor_of(values), tensor_of(all)); }), Contains("closed"));
  CHECK(all == untouched);
  CHECK_THROWS_AS(open({.batch_bytes = 1000}), InputError);
}

RANK_CASE("a rank that leaves without closing is named to the others") {
  if (ranks() == 1) return;
  std::optional<Coordinator> coordinator(open());
  std::vector<float> values(3);
  coordinator->allreduce("together", tensor_of(values)).wait();
  if (rank() == 1) {
    coordinator.reset();
  } else {
    CHECK_THAT(thrown_by([&] { coordinator->allreduce("alone", tensor_of(values)).wait(); }), Contains("rank 1"));
    CHECK_THAT(thrown_by([&] { coordinator->allreduce("again", tensor_of(values)).wait(); }), Contains("rank 1"));
    CHECK_THAT(thrown_by([&] { coordinator->close(); }), Contains("rank 1"));
  }
}

RANK_CASE("what is in flight when another rank closes fails") {
  if (ranks() == 1) return;
  Coordinator coordinator = open();
  std::vector<float> values(3);
  coordinator.barrier("start").wait();
  if (rank() == 0)
    CHECK_THAT(thrown_by([&] { coordinator.allreduce("too late", tensor_of(values)).wait(); }), Contains("closed"));
  coordinator.close();
}

RANK_CASE("in a steady state nothing is exchanged but bits") {
  Coordinator coordinator = open();
  std::vector<float> values(100);
  for (int round = 0; round < 3; ++round) coordinator.allreduce("x", tensor_of(values)).wait();
  coordinator.barrier("before").wait();
  const auto before = coordinator.statistics().announcements;
  for (int round = 0; round < 50; ++round) coordinator.allreduce("x", tensor_of(values)).wait();
  const auto after = coordinator.statistics().announcements;
  coordinator.allreduce("x", tensor_of(values)).wait();  // to close is announced: not before all have looked
  CHECK(after == before);
  coordinator.close();
}

}  // namespace
}  // namespace ronda::coordinator_test
