#include "support/fake_nccl.hpp"

#include <ronda/collectives/host/reduction.hpp>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace ronda::test {
namespace {

using nccl::Answer;
using nccl::Status;

std::string_view view(const std::byte* data, std::size_t bytes) { return {reinterpret_cast<const char*>(data), bytes}; }

}  // namespace

std::vector<std::string> FakeNccl::calls() const {
  const std::lock_guard door(door_);
  return calls_;
}

int FakeNccl::count(std::string_view call) const {
  const auto all = calls();
  return static_cast<int>(std::ranges::count_if(all, [&](const auto& one) { return one.starts_with(call); }));
}

Answer FakeNccl::say(std::string call, const Answer& answer) {
  const std::lock_guard door(door_);
  calls_.push_back(std::move(call));
  if (answer.status == Status::in_progress) {
    in_progress_ = true;
    looks_ = 0;
  }
  return answer;
}

Answer FakeNccl::make_unique_id(nccl::UniqueId& id) {
  id.fill('x');
  id[5] = '\0';  // it is no text
  return say("unique id", identifier);
}

Answer FakeNccl::init(nccl::Comm& comm, int ranks, const nccl::UniqueId& id, int rank) {
  rank_ = rank;
  comm = reinterpret_cast<nccl::Comm>(this);
  if (start.status == Status::in_progress) connecting_ = &comm;
  const bool whole = id[0] == 'x' && id[5] == '\0' && id[127] == 'x';
  return say("init " + std::to_string(rank) + " of " + std::to_string(ranks) + (whole ? "" : " by another id"), start);
}

Answer FakeNccl::state(nccl::Comm comm) {
  if (comm != reinterpret_cast<nccl::Comm>(this)) return {Status::failed, "no communicator"};
  if (trouble != Status::success) return {trouble, trouble == Status::remote_error ? "remote trouble" : "trouble"};
  if (in_progress_ && looks_until_over >= 0 && ++looks_ > looks_until_over) {
    in_progress_ = false;
    finish_writing();
  }
  return {in_progress_ ? Status::in_progress : Status::success};
}

/// What NCCL's thread does at the end of a call that was in progress.
void FakeNccl::finish_writing() noexcept {
  if (connecting_ != nullptr) *std::exchange(connecting_, nullptr) = reinterpret_cast<nccl::Comm>(this);
  if (opening_ != nullptr) *std::exchange(opening_, nullptr) = opened_;
}

void FakeNccl::abort(nccl::Comm) noexcept {
  say("abort", {});
  finish_writing();
  if (when_aborted) when_aborted();
}

Answer FakeNccl::allocate(void** memory_of, std::size_t bytes) {
  const Answer answer = say("allocate " + std::to_string(bytes), memory);
  if (answer.status != Status::success) return answer;
  *memory_of = std::malloc(bytes);
  std::memset(*memory_of, 0xab, bytes);
  ++memory_in_use_;
  if (device_ != nullptr) known_[*memory_of] = device_->know(*memory_of, bytes);
  return answer;
}

void FakeNccl::free(void* memory_of) noexcept {
  known_.erase(memory_of);
  std::free(memory_of);
  --memory_in_use_;
}

Answer FakeNccl::open_window(nccl::Comm, void* memory_of, std::size_t bytes, nccl::Window& opened) {
  opened_ = reinterpret_cast<nccl::Window>(memory_of);
  if (window.status == Status::in_progress)
    opening_ = &opened;
  else
    opened = opened_;
  Answer answer = say("open window of " + std::to_string(bytes), window);
  return windows_look_open ? Answer{} : answer;
}

void FakeNccl::close_window(nccl::Comm, nccl::Window) noexcept { say("close window", {}); }

Answer FakeNccl::group_start() {
  const InsideFake inside;
  ++grouped_;
  return say("group start", {});
}

Answer FakeNccl::group_end() {
  const InsideFake inside;
  if (--grouped_ == 0)
    for (const auto& work : std::exchange(group_, {})) work();
  return say("group end", queueing);
}

Answer FakeNccl::queue(std::string call, nccl::Comm comm, Stream& stream, std::function<void()> work) {
  const InsideFake inside;
  if (comm != reinterpret_cast<nccl::Comm>(this)) return {Status::failed, "no communicator"};
  if (others_) {
    const auto give = [this, &stream, work = std::move(work)] {
      if (device_ != nullptr) return dynamic_cast<FakeStream&>(stream).queue(work);
      stream.synchronize();
      work();
    };
    if (grouped_ > 0)
      group_.emplace_back(give);
    else
      give();
  }
  return say(std::move(call), grouped_ > 0 ? Answer{} : queueing);
}

std::string FakeNccl::reduced(std::byte* data, std::size_t count, DType dtype, ReduceOp op) {
  const auto all = others_(view(data, count * size_of(dtype)));
  std::string sums = all.empty() ? std::string(view(data, count * size_of(dtype))) : all[0];
  const Elements into{reinterpret_cast<std::byte*>(sums.data()), count, dtype};
  for (std::size_t rank = 1; rank < all.size(); ++rank)
    combine(op, into, reinterpret_cast<const std::byte*>(all[rank].data()));
  divide_if_mean({op, static_cast<int>(all.size())}, into);
  return sums;
}

Answer FakeNccl::all_reduce(nccl::Comm comm, std::byte* data, std::size_t count, DType dtype, ReduceOp op,
                            Stream& stream) {
  const InsideFake inside;
  return queue("all reduce " + std::to_string(count), comm, stream, [=, this] {
    const std::string sums = reduced(data, count, dtype, op);
    std::memcpy(data, sums.data(), sums.size());
  });
}

Answer FakeNccl::broadcast(nccl::Comm comm, std::byte* data, std::size_t count, DType dtype, int root, Stream& stream) {
  return queue("broadcast " + std::to_string(count), comm, stream, [=, this] {
    const auto all = others_(view(data, count * size_of(dtype)));
    if (!all.empty()) std::memcpy(data, all[static_cast<std::size_t>(root)].data(), count * size_of(dtype));
  });
}

Answer FakeNccl::reduce(nccl::Comm comm, std::byte* data, std::size_t count, DType dtype, ReduceOp op, int root,
                        Stream& stream) {
  return queue("reduce " + std::to_string(count), comm, stream, [=, this] {
    const std::string sums = reduced(data, count, dtype, op);
    if (rank_ == root) std::memcpy(data, sums.data(), sums.size());
  });
}

Answer FakeNccl::all_gather(nccl::Comm comm, std::byte* all, std::size_t count, DType dtype, int rank, Stream& stream) {
  return queue("all gather " + std::to_string(count), comm, stream, [=, this] {
    const std::size_t bytes = count * size_of(dtype);
    const auto parts = others_(view(all + static_cast<std::size_t>(rank) * bytes, bytes));
    for (std::size_t other = 0; other < parts.size(); ++other)
      std::memcpy(all + other * bytes, parts[other].data(), bytes);
  });
}

Answer FakeNccl::reduce_scatter(nccl::Comm comm, std::byte* all, std::size_t count, DType dtype, ReduceOp op, int rank,
                                Stream& stream) {
  return queue("reduce scatter " + std::to_string(count), comm, stream, [=, this] {
    const std::size_t bytes = count * size_of(dtype), ranks = others_("").size();
    const std::string sums = reduced(all, count * ranks, dtype, op);
    std::memcpy(all + static_cast<std::size_t>(rank) * bytes, sums.data() + static_cast<std::size_t>(rank) * bytes,
                bytes);
  });
}

}  // namespace ronda::test
