// What is compressed on its way between ranks: between threads, one a rank, so that ThreadSanitizer looks on.
#include "support/catch.hpp"
#include "support/message_allreduces.hpp"
#include "support/rank_threads.hpp"
#include "support/sanitizer.hpp"

#include <ronda/collectives/host/algorithms/allreduce/ring.hpp>
#include <ronda/collectives/host/algorithms/grid_exchange.hpp>
#include <ronda/collectives/fabric/threads/thread_network.hpp>
#include <ronda/core/dtype.hpp>
#include <ronda/core/random.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

namespace ronda::compression_test {
namespace {

constexpr Compression all_compressions[] = {Compression::bf16, Compression::fp16, Compression::int8, Compression::int4,
                                            Compression::two_bit};
/// Those that keep what rounding loses.
constexpr Compression with_feedback[] = {Compression::int8, Compression::int4, Compression::two_bit};
constexpr int rank_counts[] = {1, 2, 3, 4, 5, 7, 8};
/// Several blocks for each of eight ranks, of which the last is not full.
const std::size_t some = (std::size_t{1} << (test::sanitized ? 13 : 16)) + 1;
const std::size_t counts[] = {0, 1, 3, some};

/// From -1 to 1, others for each rank; drawn once. They repeat after so many.
constexpr std::size_t numbers_period = (1 << 16) + 1;
const std::vector<float>& numbers(std::size_t count, int rank) {
  static std::mutex door;
  static std::map<std::pair<std::size_t, int>, std::vector<float>> drawn;
  const std::lock_guard lock(door);
  auto& values = drawn[{count, rank}];
  const RngKey key(7, Purpose::test, static_cast<std::uint64_t>(rank));
  for (std::size_t i = values.size(); i < count; ++i)
    values.push_back(i < numbers_period ? 2 * key.uniform(i) - 1 : values[i - numbers_period]);
  return values;
}

/// Each of these for each of those numbers of ranks.
std::vector<std::pair<Compression, int>> each_with(std::span<const Compression> compressions,
                                                   std::initializer_list<int> ranks) {
  std::vector<std::pair<Compression, int>> all;
  for (const Compression compression : compressions)
    for (const int n : ranks) all.emplace_back(compression, n);
  return all;
}

std::vector<double> exact_sum(std::size_t count, int ranks) {
  std::vector<double> sum(count);
  for (int rank = 0; rank < ranks; ++rank) {
    const auto& values = numbers(count, rank);
    for (std::size_t i = 0; i < count; ++i) sum[i] += values[i];
  }
  return sum;
}

// ---- what numbers become on the wire --------------------------------------------------------------------------------

/// What is kept of a number at most, of numbers up to 1 that are the same in each run. Of 2bit, whose largest numbers
/// wait until the block's scale has grown, that is more than one rounding loses.
constexpr double most_kept(Compression compression) {
  switch (compression) {
    case Compression::int8: return 1.02 * largest_loss(compression);
    case Compression::int4: return 1.5 * largest_loss(compression);
    default: return 5;
  }
}

struct Coded {
  std::vector<std::byte> wire;
  std::vector<float> decoded;
};

Coded code(Compression compression, std::span<const float> values, std::vector<float>& residual, Noise noise) {
  Coded coded{std::vector<std::byte>(wire_bytes(compression, values.size())), std::vector<float>(values.size())};
  encode(compression, values, residual.data(), noise, coded.wire.data());
  decode(compression, coded.wire.data(), coded.decoded);
  return coded;
}

TEST_CASE("numbers on the wire are those of the type, and as many bytes as said") {
  CHECK(wire_bytes(Compression::bf16, 5) == 10);
  CHECK(wire_bytes(Compression::int8, 0) == 0);
  CHECK(wire_bytes(Compression::int8, 512) == 516);
  CHECK(wire_bytes(Compression::int8, 513) == 521);
  CHECK(wire_bytes(Compression::int4, 0) == 0);
  CHECK(wire_bytes(Compression::int4, 3) == 6);
  CHECK(wire_bytes(Compression::int4, 512) == 260);
  CHECK(wire_bytes(Compression::int4, 513) == 265);
  CHECK(wire_bytes(Compression::two_bit, 0) == 0);
  CHECK(wire_bytes(Compression::two_bit, 5) == 6);
  CHECK(wire_bytes(Compression::two_bit, 512) == 132);
  CHECK(wire_bytes(Compression::two_bit, 513) == 137);
  const auto values = numbers(1000, 0);
  std::vector<float> none(values.size());
  const auto bf16 = code(Compression::bf16, values, none, Noise(1)).decoded;
  const auto fp16 = code(Compression::fp16, values, none, Noise(1)).decoded;
  for (std::size_t i = 0; i < values.size(); ++i) {
    REQUIRE(bf16[i] == to_float(to_half<BFloat16>(values[i])));
    REQUIRE(fp16[i] == to_float(to_half<Float16>(values[i])));
  }
}

TEST_CASE("what rounding loses is the residual, less than a step of its block", "[arithmetic]") {
  for (const Compression compression : with_feedback)
    for (const std::size_t count : {1, 2, 3, 511, 512, 513, 5000}) {
      INFO(name_of(compression) << " of " << count);
      const auto values = numbers(count, 1);
      std::vector<float> residual(count);
      for (int run = 0; run < 30; ++run) {
        const std::vector<float> before = residual;
        const auto decoded = code(compression, values, residual, Noise(1).at(static_cast<std::uint64_t>(run))).decoded;
        for (std::size_t i = 0; i < count; ++i) {
          REQUIRE(std::abs(residual[i]) <= most_kept(compression));
          REQUIRE(std::abs(decoded[i] + residual[i] - (values[i] + before[i])) <= 1e-6F);
        }
      }
    }
}

TEST_CASE("int8 and int4 round so that the mean is exact, and as the seed says", "[arithmetic]") {
  for (const auto& [compression, side] : {std::pair(Compression::int8, 127.0F), {Compression::int4, 7.0F}}) {
    INFO(name_of(compression));
    const std::vector<float> values{1, 0.3F / side, -0.7F / side, 1e-4F, 0, -0.5F};
    std::vector<double> mean(values.size());
    constexpr int runs = 20'000;
    for (std::uint64_t run = 0; run < runs; ++run) {
      std::vector<float> residual(values.size());  // forgotten each time
      const auto decoded = code(compression, values, residual, Noise(3).at(run)).decoded;
      for (std::size_t i = 0; i < values.size(); ++i) mean[i] += decoded[i] / double{runs};
    }
    // The mean of so many roundings is off by step / 2 / sqrt(runs) = 0.0035 steps (one sigma) at most.
    for (std::size_t i = 0; i < values.size(); ++i) CHECK(std::abs(mean[i] - values[i]) <= 0.019 / side);

    const auto many = numbers(5000, 0);
    const auto wire = [&](Noise noise, Compression wanted) {
      std::vector<float> residual(many.size());
      return code(wanted, many, residual, noise).wire;
    };
    CHECK(wire(Noise(5), compression) == wire(Noise(5), compression));
    CHECK(wire(Noise(5), compression) != wire(Noise(6), compression));
    CHECK(wire(Noise(5), Compression::two_bit) == wire(Noise(6), Compression::two_bit));
  }
}

/// A block as 2bit should send it: by the threshold, of three, that loses least.
struct Ternary {
  double threshold = 0, scale = 0, lost = std::numeric_limits<double>::infinity();
  [[nodiscard]] double sent(double x) const { return std::abs(x) > threshold ? std::copysign(scale, x) : 0; }
};
Ternary best_ternary(std::span<const float> values) {
  double largest = 0;
  for (const float x : values) largest = std::max(largest, std::abs(double{x}));
  Ternary best;
  for (const double part : {0.5, 0.25, 0.125}) {
    Ternary one{part * largest, 0, 0};
    int larger = 0;
    for (const float x : values) {
      if (std::abs(x) <= one.threshold) continue;
      one.scale += std::abs(x);
      ++larger;
    }
    one.scale /= larger;
    for (const float x : values) one.lost += std::pow(x - one.sent(x), 2);
    if (one.lost < best.lost) best = one;
  }
  return best;
}

TEST_CASE("2bit sends what is beyond a threshold as its mean, by the threshold that loses least") {
  std::set<double> thresholds;
  for (const std::size_t count : {1, 2, 3, 511, 512})
    for (const int power : {1, 3, 9}) {  // the higher, the fewer are large
      INFO(count << " to the power of " << power);
      auto values = numbers(count, 3);
      for (float& x : values) x = static_cast<float>(std::pow(x, power));
      const Ternary best = best_ternary(values);
      thresholds.insert(std::round(best.threshold * 1000));
      std::vector<float> residual(count);
      const auto decoded = code(Compression::two_bit, values, residual, Noise(1)).decoded;
      for (std::size_t i = 0; i < count; ++i) {
        if (std::abs(std::abs(values[i]) - best.threshold) < 1e-4) continue;  // either will do
        REQUIRE(std::abs(decoded[i] - best.sent(values[i])) <= 1e-3);
      }
    }
  CHECK(thresholds.size() > 2);
}

TEST_CASE("byte j of n in a block has the numbers j, j + n, ..., from its low bits up") {
  for (const auto& [compression, bits] :
       {std::pair(Compression::int8, 8), {Compression::int4, 4}, {Compression::two_bit, 2}})
    for (const std::size_t count : {1, 2, 3, 5, 512, 1000, 1023}) {
      INFO(name_of(compression) << " of " << count);
      std::vector<float> residual(count), expected(count);
      const Coded coded = code(compression, numbers(count, 4), residual, Noise(1));
      const std::byte* block = coded.wire.data();
      const auto a_byte = static_cast<std::size_t>(8 / bits);
      for (std::size_t begin = 0; begin < count; begin += 512) {
        const std::size_t n = (std::min<std::size_t>(512, count - begin) + a_byte - 1) / a_byte;
        float scale = 0;
        std::memcpy(&scale, block, sizeof scale);
        for (std::size_t i = begin; i < std::min(begin + 512, count); ++i) {
          const std::size_t place = i - begin;
          int quantum = std::to_integer<int>(block[sizeof scale + place % n]) >> (static_cast<int>(place / n) * bits);
          quantum &= (1 << bits) - 1;
          if (quantum >= 1 << (bits - 1)) quantum -= 1 << bits;
          expected[i] = static_cast<float>(quantum) * scale;
        }
        block += sizeof scale + n;
      }
      CHECK(coded.decoded == expected);
      CHECK(block == coded.wire.data() + coded.wire.size());
    }
}

TEST_CASE("who keeps what is decoded has the same bits") {
  for (const Compression compression : all_compressions) {
    const auto values = numbers(5001, 2);
    std::vector<float> residual(values.size()), other_residual(values.size()), kept = values;
    const Coded coded = code(compression, values, residual, Noise(1));
    std::vector<std::byte> wire(coded.wire.size());
    encode_and_keep(compression, kept, other_residual.data(), Noise(1), wire.data());
    CHECK(wire == coded.wire);
    CHECK(kept == coded.decoded);
    CHECK(residual == other_residual);
    std::vector<float> added = values;
    decode_and_add(compression, wire.data(), added);
    for (std::size_t i = 0; i < values.size(); ++i) REQUIRE(added[i] == values[i] + kept[i]);
  }
}

TEST_CASE("numbers next to the largest stay finite, and what is lost of them too") {
  constexpr float most = std::numeric_limits<float>::max();
  for (const Compression compression : with_feedback)
    for (const float largest : {most, std::nextafter(most, 0.0F), most * 0.99999F})
      for (const std::size_t count : {std::size_t{512}, std::size_t{100}}) {
        std::vector<float> values(count), residual(count);
        for (std::size_t i = 0; i < count; ++i)
          values[i] = largest * (i % 3 == 0 ? 1.0F : -static_cast<float>(i) / static_cast<float>(count));
        for (std::uint64_t run = 0; run < 20; ++run) {  // with what earlier ones lost, which may lie beyond
          const std::vector<float> before = residual;
          const Coded coded = code(compression, values, residual, Noise(run));
          for (std::size_t i = 0; i < count; ++i) {
            REQUIRE(std::isfinite(coded.decoded[i]));
            REQUIRE(std::isfinite(residual[i]));
            REQUIRE(std::abs(double{coded.decoded[i]} - (double{values[i]} + before[i])) <=
                    largest * 1.26 * largest_loss(compression));
          }
        }
      }
}

TEST_CASE("a block that is not finite is decoded as NaN, but for its zeros, and leaves nothing behind") {
  for (const Compression compression : with_feedback) {
    for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      auto values = numbers(1200, 0);
      values[700] = values[1100] = bad;
      values[600] = values[1199] = 0;
      std::vector<float> residual(values.size());
      const auto decoded = code(compression, values, residual, Noise(1)).decoded;
      for (std::size_t i = 0; i < values.size(); ++i) {
        REQUIRE(std::isnan(decoded[i]) == (i >= 512 && values[i] != 0));
        if (values[i] == 0) REQUIRE(decoded[i] == 0);
      }
      CHECK(std::ranges::all_of(residual, [](float x) { return std::isfinite(x); }));
    }
    for (const float tiny : {0.0F, 1e-42F, 1e-35F}) {
      std::vector<float> values(10, tiny), residual(10);
      const auto decoded = code(compression, values, residual, Noise(1)).decoded;
      for (std::size_t i = 0; i < values.size(); ++i) REQUIRE(decoded[i] + residual[i] == tiny);
    }
  }
}

// ---- allreduces -----------------------------------------------------------------------------------------------------

using Make = std::function<std::unique_ptr<Algorithm>(std::unique_ptr<Transport>, const Elements&, const Reduction&,
                                                      const Wire&)>;
Make make_by(const AllreduceRow& row) {
  return [&row](std::unique_ptr<Transport> transport, const Elements& data, const Reduction& reduction,
                const Wire& wire) { return test::make(row, std::move(transport), data, reduction, wire); };
}
/// Those that compress, by name.
const std::map<std::string, Make> algorithms = [] {
  std::map<std::string, Make> all;
  for (const AllreduceRow* row : test::message_allreduces())
    if (row->compresses()) all.emplace(row->name, make_by(*row));
  return all;
}();

using Results = std::vector<std::vector<float>>;  ///< by rank

/// `see` is shown every rank's numbers after each run.
Results run(const Make& make_algorithm, int ranks, std::size_t count, ReduceOp op, Compression compression,
            int runs = 1, const std::function<void(int rank, std::span<const float>)>& see = {}) {
  ThreadNetwork network(ranks);
  Results data(static_cast<std::size_t>(ranks));
  test::on_threads(ranks, [&](int rank) {
    auto& mine = data[static_cast<std::size_t>(rank)];
    mine.resize(count);
    const Elements elements{reinterpret_cast<std::byte*>(mine.data()), count, DType::float32};
    const auto algorithm = make_algorithm(std::make_unique<test::BorrowedTransport>(network.end(rank)), elements,
                                          {op, ranks}, {compression, Noise(11)});
    for (int i = 0; i < runs; ++i) {
      std::ranges::copy(numbers(count, rank), mine.begin());
      test::run_to_end(*algorithm);
      if (see) see(rank, mine);
    }
  });
  return data;
}

/// How far a sum of numbers up to 1 may be off. In whatever order, it is the sum of what each rounding loses: of all
/// ranks' numbers, of sums of pairs, of four, …: each time `ranks` times the loss of a number of 1, in log2(ranks)
/// steps, before and after which some are rounded once more. A ring rounds sums of 1, 2, 3, … ranks, half as often as
/// there are ranks to the square.
double most_lost(Compression compression, int ranks) {
  // A number up to 1 loses half as much as one just above 1.
  const double of_one = keeps_lost(compression) ? most_kept(compression) : largest_loss(compression) / 2;
  const double in_steps = ranks * (std::bit_width(static_cast<unsigned>(ranks)) + 2.0);
  const double in_a_ring = keeps_lost(compression) ? 0 : ranks * (ranks + 1) / 2.0;
  return std::max(in_steps, in_a_ring) * of_one * 1.02 + 1e-5;
}

/// How far the furthest of `found` is from what was expected, divided by `share`; NaN is infinitely far.
double furthest(std::span<const float> found, std::span<const double> expected, double share = 1) {
  double most = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double off = std::abs(found[i] - expected[i] / share);
    most = off <= most ? most : std::isnan(off) ? std::numeric_limits<double>::infinity() : off;
  }
  return most;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

/// One that goes the same ways as another: bfloat16 stands for those without error feedback; int8 for those with it,
/// and two_bit for those of which a byte has several.
bool goes_as_another(Compression compression) {
  return compression != Compression::bf16 && compression != Compression::int8 && compression != Compression::two_bit;
}

TEST_CASE("compressed sums are the same bits on all ranks and in equal runs, and off by what rounding loses") {
  for (const auto& [name, make_algorithm] : algorithms)
    for (const Compression compression : all_compressions)
      for (const int ranks : rank_counts)
        for (const std::size_t count : counts)
          for (const ReduceOp op : {ReduceOp::sum, ReduceOp::mean}) {
            const bool as_another =
                goes_as_another(compression) || (op == ReduceOp::mean && compression != Compression::bf16);
            if (test::watched_for_races && as_another) continue;
            INFO(name_of(compression) << " by " << name << " of " << count << " on " << ranks << " ranks");
            const Results results = run(make_algorithm, ranks, count, op, compression, 2);
            for (const auto& mine : results) REQUIRE(same_bits(mine, results[0]));
            if ((ranks > 4 && op == ReduceOp::mean) || test::watched_for_races) continue;  // said already
            const Results again = run(make_algorithm, ranks, count, op, compression, 2);
            REQUIRE(same_bits(again[0], results[0]));
            const double share = op == ReduceOp::mean ? ranks : 1, off = most_lost(compression, ranks) / share;
            const auto exact = exact_sum(count, ranks);
            // The second run also carries what the first has lost.
            const double margin = keeps_lost(compression) ? 2 * off : off;
            CHECK(furthest(results[0], exact, share) <= margin);
          }
}

TEST_CASE("what rounding loses in a run comes in later ones: the mean over runs is exact") {
  const int runs = test::watched_for_races ? 5 : test::sanitized ? 20 : 50;
  constexpr std::size_t count = 3000;
  for (const auto& [name, make_algorithm] : algorithms)
    for (const auto& [compression, ranks] : each_with(with_feedback, {2, 3, 4, 5, 8})) {
      if (test::watched_for_races && goes_as_another(compression)) continue;
      INFO(name_of(compression) << " by " << name << " on " << ranks << " ranks");
      std::vector<double> total(count);
      run(make_algorithm, ranks, count, ReduceOp::sum, compression, runs, [&](int rank, std::span<const float> sums) {
        for (std::size_t i = 0; rank == 0 && i < count; ++i) total[i] += sums[i];
      });
      const auto exact = exact_sum(count, ranks);
      // All that is missing from the total is what the residuals hold in the end: as much as one run may lose.
      const double margin = most_lost(compression, ranks) / runs;
      for (std::size_t i = 0; i < count; ++i) REQUIRE(std::abs(total[i] / runs - exact[i]) <= margin);
    }
}

/// A grid where the ranks can be one: of as many columns as rows, or more.
std::unique_ptr<Algorithm> make_grid(std::unique_ptr<Transport> transport, const Elements& data,
                                     const Reduction& reduction, const Wire& wire) {
  const int ranks = transport->size();
  int columns = ranks;
  while (ranks % columns != 0 || columns * columns / 2 >= ranks) --columns;
  return std::make_unique<GridExchange>(std::move(transport), data, reduction, wire, columns);
}

TEST_CASE("in a grid all ranks get the same bits, off by four roundings, none of which is lost for good") {
  for (const auto& [compression, ranks] : each_with(with_feedback, {4, 6, 8, 12}))
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{5}, some})
      for (const ReduceOp op : {ReduceOp::sum, ReduceOp::mean}) {
        if (test::watched_for_races && (op == ReduceOp::mean || goes_as_another(compression))) continue;
        INFO(name_of(compression) << " of " << count << " on " << ranks << " ranks");
        const Results results = run(make_grid, ranks, count, op, compression, 2);
        for (const auto& mine : results) REQUIRE(same_bits(mine, results[0]));
        const double share = op == ReduceOp::mean ? ranks : 1;
        // Each rank's part once; then sums of at most `ranks`, three times; the second run has what the first lost too.
        const double margin = 2 * 4 * ranks * most_kept(compression) / share;
        CHECK(furthest(results[0], exact_sum(count, ranks), share) <= margin);
      }
  const int runs = test::sanitized ? 10 : 50, ranks = 6;
  constexpr std::size_t count = 3000;
  for (const Compression compression : with_feedback) {
    if (test::watched_for_races && goes_as_another(compression)) continue;
    INFO(name_of(compression));
    std::vector<double> total(count);
    run(make_grid, ranks, count, ReduceOp::sum, compression, runs, [&](int rank, std::span<const float> sums) {
      for (std::size_t i = 0; rank == 0 && i < count; ++i) total[i] += sums[i];
    });
    const auto exact = exact_sum(count, ranks);
    const double margin = 4 * ranks * most_kept(compression) / runs;  // what the residuals hold in the end
    for (std::size_t i = 0; i < count; ++i) REQUIRE(std::abs(total[i] / runs - exact[i]) <= margin);
  }
}

TEST_CASE("a grid is for many ranks, and as square as can be") {
  for (int ranks = 1; ranks <= GridExchange::most_direct; ++ranks) CHECK(GridExchange::columns_for(ranks) == 1);
  CHECK(GridExchange::columns_for(72) == 8);
  CHECK(GridExchange::columns_for(128) == 8);
  CHECK(GridExchange::columns_for(4096) == 64);
  CHECK(GridExchange::columns_for(4099) == 1);  // a prime
}

TEST_CASE("long chunks go in several segments, and more of them than are under way") {
  for (const Compression compression : all_compressions) {
    constexpr int ranks = 3;
    constexpr std::size_t count = (std::size_t{3} << 20) + 5;
    if (test::watched_for_races && compression != Compression::int8) continue;  // all go the same way
    if (test::sanitized && goes_as_another(compression)) continue;
    const Results results = run(make_ring, ranks, count, ReduceOp::sum, compression);
    for (const auto& mine : results) REQUIRE(same_bits(mine, results[0]));
    const auto exact = exact_sum(count, ranks);
    const double most = furthest(results[0], exact);
    CHECK(most <= most_lost(compression, ranks));
    CHECK(most > 0);
  }
}

/// What a checkpoint would hold.
class Saved final : public StateVisitor {
 public:
  void visit(const State& state) override {
    const std::span bytes(state.tensor.data(), state.tensor.desc().bytes());
    if (restoring)
      std::ranges::copy(saved.at(state.name), bytes.begin());
    else
      saved[state.name].assign(bytes.begin(), bytes.end());
  }
  bool restoring = false;
  std::map<std::string, std::vector<std::byte>> saved;
};

TEST_CASE("with its state an allreduce with error feedback goes on to the bit") {
  constexpr int ranks = 3;
  constexpr std::size_t count = 5000;
  for (const auto& [name, make_algorithm] : algorithms)
    for (const Compression compression : with_feedback) {
      ThreadNetwork network(ranks), other(ranks);
      test::on_threads(ranks, [&, &made = make_algorithm, compression](int rank) {
        std::vector<float> mine(count);
        const Elements elements{reinterpret_cast<std::byte*>(mine.data()), count, DType::float32};
        const auto planned = [&](ThreadNetwork& on) {
          return made(std::make_unique<test::BorrowedTransport>(on.end(rank)), elements, {ReduceOp::sum, ranks},
                      Wire{compression, Noise(11)});
        };
        const auto once = [&](Algorithm& algorithm) {
          std::ranges::copy(numbers(count, rank), mine.begin());
          test::run_to_end(algorithm);
          return mine;
        };
        const auto algorithm = planned(network);
        for (int i = 0; i < 3; ++i) once(*algorithm);
        Saved state;
        algorithm->visit("sum", state);
        const auto expected = once(*algorithm);

        state.restoring = true;
        const auto continued = planned(other);
        continued->visit("sum", state);
        const auto found = once(*continued);
        if (state.saved.size() != 2 || !same_bits(found, expected)) throw std::runtime_error("another continuation");
      });
    }
}

TEST_CASE("a number that is not finite is seen by all ranks, and forgotten with the run") {
  constexpr int ranks = 3;
  for (const auto& [name, make_algorithm] : algorithms)
    for (const Compression compression : all_compressions) {
      INFO(name_of(compression) << " by " << name);
      ThreadNetwork network(ranks);
      std::vector<int> seen(ranks), left(ranks);
      test::on_threads(ranks, [&, &made = make_algorithm, compression](int rank) {
        std::vector<float> mine(2000, 1.0F);
        const Elements elements{reinterpret_cast<std::byte*>(mine.data()), mine.size(), DType::float32};
        const auto algorithm = made(std::make_unique<test::BorrowedTransport>(network.end(rank)), elements,
                                    {ReduceOp::sum, ranks}, {compression, Noise(1)});
        const auto me = static_cast<std::size_t>(rank);
        if (rank == 1) mine[1234] = std::numeric_limits<float>::infinity();
        test::run_to_end(*algorithm);
        seen[me] = std::isfinite(mine[1234]) ? 0 : 1;
        std::ranges::fill(mine, 1.0F);
        test::run_to_end(*algorithm);
        left[me] = static_cast<int>(std::ranges::count_if(mine, [](float x) { return !std::isfinite(x); }));
      });
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        CHECK(seen[rank] == 1);
        CHECK(left[rank] == 0);
      }
    }
}

}  // namespace
}  // namespace ronda::compression_test
