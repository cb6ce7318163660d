#include <ronda/collectives/group/group.hpp>
#include <ronda/coordinator/detail/communicator_link.hpp>
#include <ronda/coordinator/detail/descriptor.hpp>
#include <ronda/core/error.hpp>

#include <sched.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <thread>

namespace ronda {
namespace {

Tensor view(const Buffer& buffer, DType dtype, std::size_t bytes) {
  return {{Shape{static_cast<std::int64_t>(bytes / size_of(dtype))}, dtype, {}}, buffer.data()};
}

}  // namespace

CommunicatorLink::CommunicatorLink(Communicator communicator, std::size_t stage_bytes)
    : communicator_(std::move(communicator)),
      stage_bytes_(stage_bytes),
      words_(communicator_.allocate(word_counts.back() * sizeof(std::uint64_t), Memory::node_shared)),
      block_(Buffer::host(large_block())) {
  for (auto& stage : stages_) stage = communicator_.allocate(stage_bytes, Memory::node_shared);
  for (std::size_t i = 0; i < word_counts.size(); ++i)
    intersections_[i] = communicator_.plan(
        AllreduceSpec{.tensors = {view(words_, DType::int64, word_counts[i] * sizeof(std::uint64_t))},
                      .op = ReduceOp::bitwise_and,
                      .label = "the coordinator's cycle",
                      .idles = true});
  const auto plan_merge = [&](std::size_t bytes) {
    return communicator_.group().plan_merge({block_.data(), bytes}, merge_announcements,
                                            "the coordinator's announcements");
  };
  small_merge_ = plan_merge(small_block);
  large_merge_ = plan_merge(large_block());
}

std::string CommunicatorLink::name_of_rank(int rank) const {
  return communicator_.group().members().name_of_rank(static_cast<std::size_t>(rank));
}

// ---- an operation in flight -----------------------------------------------------------------------------------------

void CommunicatorLink::Operation::begin(const Event& event) noexcept {
  event_ = event;
  error_ = nullptr;
  gentle_by_ = nullptr;
  to_ = {};
}

void CommunicatorLink::Operation::begin(const Event& event, const Buffer& result, std::span<std::byte> to) noexcept {
  begin(event);
  result_ = result.data();
  to_ = to;
}

void CommunicatorLink::Operation::wait_gently(bool eager, const Clock& clock) noexcept {
  gentle_by_ = &clock;
  eager_ = eager;
}

bool CommunicatorLink::Operation::arrived() noexcept {
  try {
    return event_.ready();
  } catch (...) {
    error_ = std::current_exception();
    return true;
  }
}

void CommunicatorLink::Operation::finish() {
  if (error_) std::rethrow_exception(error_);
  if (!to_.empty()) std::memcpy(to_.data(), result_, to_.size());
}

void CommunicatorLink::Operation::wait() noexcept {
  if (gentle_by_ != nullptr && arrives_gently()) return;
  try {
    event_.wait();  // the communicator knows how late the others may be
  } catch (...) {   // `arrived` finds the same error
  }
}

/// False if the others are late.
bool CommunicatorLink::Operation::arrives_gently() noexcept {
  constexpr int looks = 1000;
  constexpr double yielding = 100e-6, sleeping = 1;
  for (int look = 0; eager_ && look < looks; ++look)
    if (arrived()) return true;
  const double start = gentle_by_->now();
  for (;;) {
    if (arrived()) return true;
    const double waited = gentle_by_->now() - start;
    if (waited > sleeping) return false;
    if (eager_ && waited < yielding)
      sched_yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

// ---- what all ranks have --------------------------------------------------------------------------------------------

LinkOperation& CommunicatorLink::intersect(std::span<std::uint64_t> words, bool eager) {
  std::size_t fits = 0;
  while (word_counts[fits] < words.size()) ++fits;
  std::memcpy(words_.data(), words.data(), words.size_bytes());
  agreeing_.begin(intersections_[fits]->start(), words_, std::as_writable_bytes(words));
  agreeing_.wait_gently(eager, clock());
  return agreeing_;
}

LinkOperation& CommunicatorLink::merge(std::span<std::byte> block) {
  std::memcpy(block_.data(), block.data(), block.size());
  agreeing_.begin((block.size() == small_block ? small_merge_ : large_merge_)->start(), block_, block);
  return agreeing_;
}

std::span<std::byte> CommunicatorLink::stage(int index) {
  return {stages_[static_cast<std::size_t>(index)].data(), stage_bytes_};
}

std::size_t CommunicatorLink::size_class(std::size_t bytes) noexcept {
  constexpr std::size_t least = 256;
  constexpr int log2_of_steps = 3;
  if (bytes <= least) return least;
  const std::size_t step = std::size_t{1} << (std::bit_width(bytes - 1) - 1 - log2_of_steps);
  return (bytes + step - 1) / step * step;
}

void CommunicatorLink::start(int stage, ReduceOp op, DType dtype, std::size_t bytes) {
  const std::size_t rounded = std::min(size_class(bytes), stage_bytes_);
  auto& reduction = reductions_[{stage, op, dtype, rounded}];
  if (reduction == nullptr)
    reduction = communicator_.plan(AllreduceSpec{{view(stages_[static_cast<std::size_t>(stage)], dtype, rounded)},
                                                 op,
                                                 AllreduceAlgorithm::automatic,
                                                 "a batch of the coordinator's"});
  reducing_[static_cast<std::size_t>(stage)].begin(reduction->start());
}

std::unique_ptr<CoordinatorLink> CommunicatorLink::split(int color, int key) {
  return std::make_unique<CommunicatorLink>(communicator_.split(color, key), stage_bytes_);
}

}  // namespace ronda
