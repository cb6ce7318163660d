#include <ronda/core/clock.hpp>
#include <ronda/core/error.hpp>
#include <ronda/runtime/strategy/split/planned_part_exchange.hpp>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

namespace ronda {
namespace {

std::size_t numbers_of(const PartMessages& message) {
  return std::max(message.sums,
                  message.rows * std::accumulate(message.widths.begin(), message.widths.end(), std::size_t{0}));
}

/// A number is added to while this lives.
class Timed {
 public:
  explicit Timed(double& seconds) : seconds_(seconds), begin_(steady_seconds()) {}
  Timed(const Timed&) = delete;
  ~Timed() { seconds_ += steady_seconds() - begin_; }

 private:
  double& seconds_;
  double begin_;
};

}  // namespace

PlannedPartExchange::PlannedPartExchange(Communicator group, std::span<const PartMessages> messages)
    : group_(std::move(group)) {
  std::size_t most = 0;
  for (const PartMessages& message : messages) most = std::max(most, numbers_of(message));
  staging_ = group_.allocate(most * sizeof(float), Memory::node_shared);
  for (const PartMessages& message : messages) {
    const std::string numbers = std::to_string(numbers_of(message)) + " numbers of the parts";
    Planned& planned = planned_.emplace_back(Planned{message, nullptr});
    const Tensor tensor(staged(numbers_of(message)));
    if (message.sums > 0) {
      planned.collective =
          group_.plan(AllreduceSpec{.tensors = {tensor}, .label = "a sum of " + numbers, .flush_denormals = true});
      continue;
    }
    std::vector<std::size_t> counts = message.widths;
    for (std::size_t& count : counts) count *= message.rows;
    planned.collective =
        group_.plan(AllgatherSpec{.all = tensor, .counts = std::move(counts), .label = "a gather of " + numbers});
  }
}

void PlannedPartExchange::add_up(std::span<float> numbers) {
  const Timed timed(counted().seconds);
  Planned& sum = planned(numbers.size(), 0, {});
  const std::span<float> shared = staged(numbers.size());
  std::ranges::copy(numbers, shared.begin());
  sum.collective->start().wait();
  std::ranges::copy(shared, numbers.begin());
  counted().bytes += numbers.size_bytes();
}

/// In the shared memory lie all rows of one part, then all of the next.
void PlannedPartExchange::gather(std::span<const float> mine, std::span<float> all,
                                 std::span<const std::size_t> widths) {
  const Timed timed(counted().seconds);
  const std::size_t whole = std::accumulate(widths.begin(), widths.end(), std::size_t{0}), rows = all.size() / whole;
  Planned& gather = planned(0, rows, widths);
  const std::span<float> shared = staged(all.size());
  const auto part = static_cast<std::size_t>(group_.rank());
  const std::size_t before = std::accumulate(widths.begin(), widths.begin() + group_.rank(), std::size_t{0});
  std::ranges::copy(mine.first(rows * widths[part]), shared.subspan(rows * before).begin());
  gather.collective->start().wait();
  const float* from = shared.data();
  std::size_t first = 0;
  for (const std::size_t width : widths) {
    for (std::size_t row = 0; row < rows; ++row, from += width)
      std::copy_n(from, width, all.data() + row * whole + first);
    first += width;
  }
  counted().bytes += all.size_bytes();
}

std::vector<std::string> PlannedPartExchange::describe() const {
  std::vector<std::string> lines;
  for (const Planned& planned : planned_)
    lines.push_back(std::to_string(numbers_of(planned.message)) + " numbers " +
                    (planned.message.sums > 0 ? "added up by " : "gathered by ") +
                    std::string(planned.collective->algorithm()));
  return lines;
}

std::size_t PlannedPartExchange::memory() const noexcept {
  std::size_t bytes = staging_.bytes();
  for (const Planned& planned : planned_) bytes += planned.collective->memory();
  return bytes;
}

std::span<float> PlannedPartExchange::staged(std::size_t count) const {
  return {reinterpret_cast<float*>(staging_.data()), count};
}

PlannedPartExchange::Planned& PlannedPartExchange::planned(std::size_t sums, std::size_t rows,
                                                           std::span<const std::size_t> widths) {
  const auto found = std::ranges::find_if(planned_, [&](const Planned& each) {
    return each.message.sums == sums && each.message.rows == rows && std::ranges::equal(each.message.widths, widths);
  });
  if (found != planned_.end()) return *found;
  throw LogicError("an operation tells the other parts " + std::to_string(sums > 0 ? sums : rows) +
                   (sums > 0 ? " numbers" : " rows") + ", and its plan does not say so");
}

}  // namespace ronda
