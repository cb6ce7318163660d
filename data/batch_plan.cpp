#include <ronda/core/error.hpp>
#include <ronda/data/batch_plan.hpp>

#include <algorithm>
#include <string>

namespace ronda {

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
