#include <ronda/core/error.hpp>
#include <ronda/core/random.hpp>
#include <ronda/data/batch_plan.hpp>

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <utility>

namespace ronda {
namespace {

/// @param last  the places from here on have what they keep
/// @return the new one, at most `until`
template <class Number>
std::size_t shuffle_down(std::span<Number> order, std::size_t last, std::size_t until, const RngKey& key) {
  std::array<std::uint64_t, 16> bounds, counters, others;
  while (last > until && last > others.size()) {
    for (std::size_t i = 0; i < others.size(); ++i) {
      bounds[i] = last - i;
      counters[i] = last - i - 1;
    }
    key.below(bounds, counters, others);
    for (const std::uint64_t other : others) std::swap(order[--last], order[other]);
  }
  for (; last > until; --last) std::swap(order[last - 1], order[key.below(last, last - 1)]);
  return last;
}

template <class Number>
void write_order(std::span<Number> order, bool shuffle, const RngKey& key) {
  std::iota(order.begin(), order.end(), Number{0});
  if (shuffle) shuffle_down(order, order.size(), 0, key);
}

}  // namespace

void SampleOrder::write(std::uint64_t epoch, std::span<std::uint64_t> order) const {
  write_order(order, shuffle_, RngKey(seed_, Purpose::sample_order, epoch));
}

void SampleOrder::write(std::uint64_t epoch, std::span<std::uint32_t> order) const {
  write_order(order, shuffle_, RngKey(seed_, Purpose::sample_order, epoch));
}

std::size_t SampleOrder::write_more(std::uint64_t epoch, std::span<std::uint32_t> order, std::size_t left,
                                    std::size_t count) const {
  if (left == size_) std::iota(order.begin(), order.end(), std::uint32_t{0});
  if (!shuffle_) return 0;
  return shuffle_down(order, left, left - std::min(left, count), RngKey(seed_, Purpose::sample_order, epoch));
}

BatchPlan::BatchPlan(std::size_t size, std::size_t global_batch, Shard shard, std::size_t accumulate)
    : size_(size), global_batch_(std::min(global_batch, size)), shard_(shard), accumulate_(accumulate) {
  if (size == 0) throw InputError("the dataset has no samples");
  if (global_batch == 0) throw InputError("a batch size must be at least 1, found 0");
  if (accumulate == 0) throw InputError("the number of accumulated micro-batches must be at least 1, found 0");
  if (shard.count == 0 || shard.index > shard.count)
    throw LogicError("a shard's index must be less than the number of shards, or as large where it is empty");
}

std::size_t BatchPlan::capacity() const noexcept {
  const auto rounded_up = [](std::size_t a, std::size_t b) { return (a + b - 1) / b; };
  return std::max(least_capacity_, rounded_up(rounded_up(global_batch_, shard_.count), accumulate_));
}

std::size_t BatchPlan::smallest() const noexcept {
  const std::size_t part = std::max<std::size_t>(global_batch_ / shard_.count, 1);
  return std::max<std::size_t>(part / accumulate_, 1);
}

bool BatchPlan::has_samples() const noexcept {
  for (std::size_t i = 0; i < micro_batches(); ++i)
    if (part(0, i).size() > 0) return true;
  return false;
}

BatchPlan BatchPlan::dealt(const Deal& deal) const {
  const bool possible = deal.all == shard_.count * accumulate_ && deal.count > 0 && deal.first + deal.count <= deal.all;
  if (deal != Deal() && !possible)
    throw LogicError(std::to_string(deal.count) + " micro-batches from number " + std::to_string(deal.first) +
                     " on are no part of " + std::to_string(shard_.count * accumulate_));
  BatchPlan plan = *this;
  plan.deal_ = deal;
  return plan;
}

Range BatchPlan::global(std::size_t step) const noexcept {
  const std::size_t begin = step * global_batch_;
  return {begin, std::min(begin + global_batch_, size_)};
}

Range BatchPlan::part(std::size_t step, std::size_t micro_batch) const noexcept {
  const Range batch = global(step);
  if (is_empty()) return {batch.begin, batch.begin};
  if (deal_.all > 0) {
    const Range part = part_of(batch.size(), deal_.first + micro_batch, deal_.all);
    return {batch.begin + part.begin, batch.begin + part.end};
  }
  const Range ours = part_of(batch.size(), shard_.index, shard_.count);
  const Range micro = part_of(ours.size(), micro_batch, accumulate_);
  const std::size_t begin = batch.begin + ours.begin;
  return {begin + micro.begin, begin + micro.end};
}

}  // namespace ronda
