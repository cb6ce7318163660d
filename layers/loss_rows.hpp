#pragma once
#include <algorithm>
#include <cstddef>
#include <span>

#include <ronda/core/parallel.hpp>
#include <ronda/layers/pass.hpp>

namespace ronda {

/// The sums that one row of outputs adds to StepControl.
struct RowSums {
  double loss = 0, weight = 0, metric = 0;
};

[[nodiscard]] constexpr std::size_t bytes_of_row_sums(std::size_t rows) noexcept { return rows * sizeof(RowSums); }

/// Calls `row(n)`, which returns RowSums, for each row on the stream's threads, and adds them to `pass.control` in the
/// order of the rows: the sums do not depend on the number of threads.
/// @param scratch  bytes_of_row_sums(rows)
/// @param width    elements of a row; few elements use fewer threads
/// @param row      must not throw
template <class Row>
void add_rows(std::size_t rows, std::size_t width, std::byte* scratch, const Pass& pass, Row&& row) {
  constexpr std::size_t least_elements = 16384;  // per thread
  const std::span sums(reinterpret_cast<RowSums*>(scratch), rows);
  const std::size_t least_rows = std::max<std::size_t>(least_elements / std::max<std::size_t>(width, 1), 1);
  parallel_for(
      pass.stream.threads(), rows,
      [&](Range range) {
        for (std::size_t n = range.begin; n < range.end; ++n) sums[n] = row(n);
      },
      least_rows);
  for (const RowSums& sum : sums) {
    pass.control->loss += sum.loss;
    pass.control->weight += sum.weight;
    pass.control->metric += sum.metric;
  }
}

}  // namespace ronda
