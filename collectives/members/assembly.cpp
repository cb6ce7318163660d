#include <ronda/collectives/host/algorithms/exchange.hpp>
#include <ronda/collectives/host/algorithms/gathering.hpp>
#include <ronda/collectives/host/engine/planned_collective.hpp>
#include <ronda/collectives/members/assembly.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/hash.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

namespace ronda {
namespace {

constexpr std::size_t most_gathered = std::size_t{2} << 30;

std::vector<std::span<std::byte>> values_of(std::span<std::byte> bytes, std::size_t value_bytes) {
  std::vector<std::span<std::byte>> values;
  for (; !bytes.empty(); bytes = bytes.subspan(value_bytes)) values.push_back(bytes.first(value_bytes));
  return values;
}

/// Not inlined: GCC would see a delete of its own, and take it for one that does not fit.
[[gnu::noinline]] std::unique_ptr<Collective> planned(const std::shared_ptr<Engine>& engine,
                                                      std::unique_ptr<Algorithm> algorithm, std::string_view place,
                                                      Ledger& ledger) {
  std::vector<std::unique_ptr<Algorithm>> algorithms;
  algorithms.push_back(std::move(algorithm));
  return std::make_unique<PlannedCollective>(engine, std::move(algorithms), "messages", Description(Kind::mpi, place),
                                             ledger, nullptr);
}

}  // namespace

Assembly::Assembly(std::shared_ptr<Engine> engine, Ranks ranks, FabricChannel channel)
    : engine_(std::move(engine)),
      ranks_(std::move(ranks)),
      channel_(std::move(channel)),
      rank_(static_cast<int>(std::ranges::find(*ranks_, engine_->fabric().roster().self) - ranks_->begin())) {}

Assembly Assembly::of(Ranks some) const {
  Assembly part(engine_, std::move(some), channel_);
  part.place_ = place_;
  return part;
}

std::unique_ptr<Collective> Assembly::done(std::unique_ptr<Algorithm> algorithm) {
  auto run = planned(engine_, std::move(algorithm), place_, ledger_);
  run->start().wait();
  return run;
}

void Assembly::gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all,
                            const std::vector<std::size_t>& bytes) {
  if (all.size() > most_gathered)  // every rank has the same sum
    throw LogicError("the ranks' texts are longer than 2 GiB together; gather data as tensors");
  if (size() == 1) {
    std::ranges::copy(mine, all.begin());
    return;
  }
  const std::uint64_t place = Hash().add(place_).add(++gatherings_).value();
  auto algorithm = std::make_unique<Gathering>(open(), place, mine, bytes);
  const Gathering& gathering = *algorithm;
  const auto run = done(std::move(algorithm));
  gathering.copy_to(all);
}

void Assembly::barrier() { gather_bytes({}, {}, std::vector<std::size_t>(ranks_->size())); }

bool Assembly::all(bool mine) {
  return std::ranges::all_of(gather(static_cast<char>(mine)), [](char one) { return one != 0; });
}

void Assembly::broadcast(std::span<std::byte> bytes, int root) {
  std::vector<std::size_t> of_rank(ranks_->size());
  of_rank[static_cast<std::size_t>(root)] = bytes.size();
  gather_bytes(rank_ == root ? bytes : std::span<std::byte>(), bytes, of_rank);
}

std::vector<std::string> Assembly::gather_texts(std::string_view mine) {
  const std::vector<std::size_t> lengths = gather(mine.size());
  std::string all(std::accumulate(lengths.begin(), lengths.end(), std::size_t{0}), '\0');
  gather_bytes(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)), lengths);
  std::vector<std::string> texts;
  std::size_t at = 0;
  for (const std::size_t length : lengths) {
    texts.push_back(all.substr(at, length));
    at += length;
  }
  return texts;
}

void Assembly::exchange(std::span<std::byte> mine, std::span<std::byte> all, std::size_t value_bytes) {
  static_cast<void>(done(std::make_unique<Exchange>(open(), messages_of(values_of(mine, value_bytes)),
                                                    messages_of(values_of(all, value_bytes)))));
}

void Assembly::merge(std::span<std::byte> block, TreeMerge::Merge merge) {
  static_cast<void>(done(std::make_unique<TreeMerge>(open(), block, std::move(merge))));
}

}  // namespace ronda
