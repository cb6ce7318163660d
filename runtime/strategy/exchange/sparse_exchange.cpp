#include <ronda/core/clock.hpp>
#include <ronda/runtime/strategy/exchange/sparse_exchange.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace ronda {

SparseExchange::SparseExchange(Communicator communicator, std::unique_ptr<GradientExchange> dense, Replica& replica,
                               AllreduceAlgorithm algorithm)
    : dense_(std::move(dense)), rows_(replica.sparse_arena()) {
  const auto tables = replica.plan().tables();
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const Tensor gradient(replica.plan().requests[index_of(tables[i].id)].desc,
                          replica.gradients().data() + tables[i].offset);
    tables_.push_back(
        {tables[i],
         communicator.plan(SparseAllreduceSpec{
             .table = gradient, .touched = &replica.touched(i), .algorithm = algorithm, .label = tables[i].name})});
  }
  ranges_.resize(2);
}

void SparseExchange::mark_ready(ParameterId id, Stream& stream) {
  const auto table = std::ranges::find(tables_, id, [](const Table& each) { return each.slot.id; });
  if (table == tables_.end())
    dense_->mark_ready(id, stream);
  else
    table->done = table->sum->start(stream.record());
}

void SparseExchange::reduce(Sums wanted, Stream& stream) {
  dense_->reduce(wanted, stream);
  const double begin = steady_seconds();
  for (const Table& table : tables_) stream.wait(table.done);
  exposed_seconds_ += steady_seconds() - begin;
}

std::span<const ArenaRange> SparseExchange::ranges_to_update(Stream& stream) {
  const auto dense = dense_->ranges_to_update(stream);
  ranges_.assign(dense.begin(), dense.end());
  ranges_.push_back(rows_);
  return ranges_;
}

std::vector<std::string> SparseExchange::describe() const {
  auto lines = dense_->describe();
  for (const Table& table : tables_)
    lines.push_back("touched rows of " + table.slot.name + " by " + std::string(table.sum->algorithm()));
  return lines;
}

double SparseExchange::sparse_bytes_per_step() const noexcept {
  double bytes = 0;
  for (const Table& table : tables_)
    if (const auto runs = table.sum->times().runs; runs > 0)
      bytes += static_cast<double>(table.sum->sent_bytes()) / static_cast<double>(runs);
  return bytes;
}

std::vector<std::string> SparseExchange::report() const {
  auto lines = dense_->report();
  for (const Table& table : tables_) {
    const CollectiveTimes times = table.sum->times();
    if (times.runs == 0) continue;
    const auto runs = static_cast<double>(times.runs);
    lines.push_back("touched rows of " + table.slot.name + ": " +
                    std::to_string(std::llround(static_cast<double>(table.sum->sent_bytes()) / runs)) +
                    " bytes sent by " + std::string(table.sum->algorithm()) + " took " +
                    std::to_string(std::llround(times.total / runs * 1e6)) + " us in the mean");
  }
  return lines;
}

std::size_t SparseExchange::memory() const noexcept {
  std::size_t bytes = dense_->memory();
  for (const Table& table : tables_) bytes += table.sum->memory();
  return bytes;
}

}  // namespace ronda
