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

void SparseExchange::update(FunctionRef<void(const ArenaRange&)> apply, Stream& stream) {
  dense_->update(apply, stream);
  apply(rows_);
}

ExchangeReport SparseExchange::report() const {
  ExchangeReport report = dense_->report();
  for (const Table& table : tables_) {
    const std::string rows = "touched rows of " + table.slot.name, algorithm(table.sum->algorithm());
    report.plan.push_back(rows + " by " + algorithm);
    report.memory += table.sum->memory();
    const CollectiveTimes times = table.sum->times();
    if (times.runs == 0) continue;
    const auto runs = static_cast<double>(times.runs);
    const double bytes = static_cast<double>(table.sum->sent_bytes()) / runs;
    report.sparse_bytes_per_step += bytes;
    report.costs.push_back(rows + ": " + std::to_string(std::llround(bytes)) + " bytes sent by " + algorithm +
                           " took " + std::to_string(std::llround(times.total / runs * 1e6)) + " us in the mean");
  }
  return report;
}

}  // namespace ronda
