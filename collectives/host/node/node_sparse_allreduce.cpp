#include <ronda/collectives/host/node/node_sparse_allreduce.hpp>
#include <ronda/collectives/host/reduction.hpp>

#include <algorithm>
#include <utility>

namespace ronda {
namespace {

constexpr std::size_t page_bytes = 4096;

}  // namespace

NodeSparseAllreduce::NodeSparseAllreduce(NodeCopies tables, NodeCopies lists, std::size_t width, TouchedRows& touched)
    : tables_(std::move(tables)),
      lists_(std::move(lists)),
      width_(width),
      rows_a_page_(std::max<std::size_t>(page_bytes / (width * sizeof(float)), 1)),
      touched_(touched),
      barrier_(tables_.lines, tables_.rank, tables_.ranks),
      list_(TouchedRows::length(touched.capacity())),
      all_(list_) {
  for (std::size_t row = 0; row < touched.capacity(); row += rows_a_page_)
    if (owns(static_cast<std::int32_t>(row)))
      tables_.touch({row * width_, std::min(row + rows_a_page_, touched.capacity()) * width_});
}

Task NodeSparseAllreduce::run() {
  barrier_.arrive();
  co_await barrier_;
  read_lists();
  sum_own_rows();
  barrier_.arrive();
  co_await barrier_;
  touched_.assign(all_.rows());
}

void NodeSparseAllreduce::read_lists() {
  all_.clear();
  for (const std::byte* list : lists_.data) {
    const auto* numbers = reinterpret_cast<const std::int32_t*>(list);
    for (const std::int32_t row : std::span(numbers + 1, static_cast<std::size_t>(numbers[0]))) all_.add(row);
  }
}

void NodeSparseAllreduce::sum_own_rows() {
  const Reduction sum{ReduceOp::sum, static_cast<int>(tables_.data.size())};
  const std::size_t others = tables_.data.size() - 1, row_bytes = sizeof(std::int32_t) + width_ * sizeof(float);
  for (const std::int32_t row : touched_.rows())
    if (!owns(row)) sent_ += row_bytes;
  for (const std::int32_t row : all_.rows()) {
    if (!owns(row)) continue;
    const std::size_t begin = static_cast<std::size_t>(row) * width_;
    reduce_copies(sum, tables_.data, DType::float32, {begin, begin + width_}, tables_.data);
    sent_ += others * row_bytes;
  }
}

bool NodeSparseAllreduce::owns(std::int32_t row) const noexcept {
  return static_cast<std::size_t>(row) / rows_a_page_ % tables_.data.size() == static_cast<std::size_t>(tables_.rank);
}

}  // namespace ronda
