#pragma once
#include <memory>
#include <utility>
#include <vector>

#include <ronda/collectives/host/algorithms/allreduce_row.hpp>

namespace ronda::test {

/// The rows of the allreduces that Ronda does by messages, whether or not they compress and have a cost.
inline std::vector<const AllreduceRow*> message_allreduces() {
  std::vector<const AllreduceRow*> rows;
  for (const AllreduceRow* row : allreduce_rows())
    if (row->means == AllreduceMeans::messages) rows.push_back(row);
  return rows;
}

/// The algorithm of such a row, over `transport`.
inline std::unique_ptr<Algorithm> make(const AllreduceRow& row, std::unique_ptr<Transport> transport,
                                       const Elements& data, const Reduction& reduction, const Wire& wire = {}) {
  return row.make({.reduction = reduction,
                   .elements = data,
                   .wire = wire,
                   .copies = {},
                   .across_all = [&] { return std::move(transport); },
                   .across_nodes = {},
                   .by_fabric = {}});
}

}  // namespace ronda::test
