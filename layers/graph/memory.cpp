#include <ronda/core/buffer.hpp>
#include <ronda/layers/graph/memory.hpp>

#include <algorithm>
#include <utility>

namespace ronda {
namespace {

struct Placement {
  std::vector<std::size_t> offsets;
  std::size_t bytes = 0;
};

/// Each at the lowest offset that is free while it is in use, in this order.
Placement place(std::span<const BufferRequest> requests, std::span<const std::size_t> order) {
  Placement result{std::vector<std::size_t>(requests.size()), 0};
  auto& offsets = result.offsets;
  std::vector<std::size_t> placed;  // by offset
  for (const std::size_t i : order) {
    std::size_t offset = 0;
    for (const std::size_t other : placed) {
      if (!requests[other].overlaps(requests[i])) continue;
      if (offset + requests[i].bytes <= offsets[other]) break;
      offset = std::max(offset, Buffer::aligned(offsets[other] + requests[other].bytes));
    }
    offsets[i] = offset;
    result.bytes = std::max(result.bytes, Buffer::aligned(offset + requests[i].bytes));
    placed.insert(std::ranges::upper_bound(placed, offset, {}, [&](std::size_t p) { return offsets[p]; }), i);
  }
  return result;
}

/// The best of three orders: large ones first, those that are in use first, and those that are in use longest.
template <class Wanted>
Placement best_placement(std::span<const BufferRequest> requests, Wanted wanted) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < requests.size(); ++i)
    if (requests[i].bytes > 0 && !requests[i].used.empty() && wanted(requests[i])) order.push_back(i);
  const auto start = [&](std::size_t i) { return requests[i].used.front().from; };
  const auto large_first = [&](std::size_t i) { return std::pair(-static_cast<double>(requests[i].bytes), start(i)); };
  const auto early_first = [&](std::size_t i) { return std::pair(start(i), -static_cast<double>(requests[i].bytes)); };
  const auto long_first = [&](std::size_t i) {
    return std::pair(static_cast<double>(start(i)) - requests[i].used.back().to, start(i));
  };
  std::ranges::stable_sort(order, {}, large_first);
  Placement best = place(requests, order);
  const auto take_better = [&](Placement other) {
    if (other.bytes < best.bytes) best = std::move(other);
  };
  std::ranges::stable_sort(order, {}, early_first);
  take_better(place(requests, order));
  std::ranges::stable_sort(order, {}, long_first);
  take_better(place(requests, order));
  return best;
}

}  // namespace

bool BufferRequest::overlaps(const BufferRequest& other) const noexcept {
  return std::ranges::any_of(used, [&](const Interval& mine) {
    return std::ranges::any_of(other.used, [&](const Interval& theirs) { return mine.overlaps(theirs); });
  });
}

BufferPlan place_buffers(std::span<const BufferRequest> requests) {
  const std::size_t without =
      best_placement(requests, [](const BufferRequest& request) { return !request.scratch; }).bytes;
  Placement all = best_placement(requests, [](const BufferRequest&) { return true; });
  return {
      .offsets = std::move(all.offsets), .bytes = all.bytes, .scratch_bytes = all.bytes - std::min(all.bytes, without)};
}

namespace graph {

std::size_t Memory::add(std::string owner, std::size_t bytes, bool scratch) {
  requests_.push_back({std::move(owner), bytes, {}, scratch});
  holder_.push_back(requests_.size() - 1);
  return requests_.size() - 1;
}

void Memory::extend_use(std::size_t buffer, std::uint32_t time) {
  auto& used = requests_[buffer].used;
  if (used.empty()) used.push_back({time, time});
  used.back().to = std::max(used.back().to, time);
}

void Memory::use_once(std::size_t buffer, std::uint32_t time) { requests_[buffer].used.push_back({time, time}); }

void Memory::share_if_possible(std::size_t earlier, std::size_t later) {
  earlier = holder_of(earlier);
  BufferRequest &first = requests_[earlier], &second = requests_[later];
  if (first.bytes != second.bytes || first.used.empty() || second.used.empty()) return;
  if (first.used.back().to != second.used.front().from) return;
  first.used.back().to = second.used.back().to;
  first.owner += ", " + second.owner;
  second.used.clear();
  second.bytes = 0;
  holder_[later] = earlier;
}

std::size_t Memory::holder_of(std::size_t buffer) const {
  while (holder_[buffer] != buffer) buffer = holder_[buffer];
  return buffer;
}

}  // namespace graph
}  // namespace ronda
