// Ranks as threads of one process, each with a coordinator's loop: without MPI, where ThreadSanitizer looks on and
// messages are counted.
#pragma once
#include "support/catch.hpp"
#include "support/rank_threads.hpp"

#include <ronda/collectives/host/algorithms/tree_merge.hpp>
#include <ronda/collectives/host/reduction.hpp>
#include <ronda/collectives/fabric/threads/thread_network.hpp>
#include <ronda/coordinator/detail/descriptor.hpp>
#include <ronda/coordinator/detail/loop.hpp>
#include <ronda/core/error.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ronda::test {

/// Where the ranks of a group of threads meet.
struct Meeting {
  explicit Meeting(int ranks)
      : all(ranks),
        network(ranks),
        words(static_cast<std::size_t>(ranks)),
        blocks(words.size()),
        stages(words.size()),
        sent(words.size()) {}
  struct Sent {
    std::uint64_t merges = 0, messages = 0, bytes = 0;  ///< in merges
  };
  std::barrier<> all;
  ThreadNetwork network;
  std::vector<std::vector<std::uint64_t>> words;  ///< by rank
  std::vector<std::vector<std::byte>> blocks;
  std::vector<std::array<std::vector<std::byte>, CoordinatorLink::stages>> stages;
  std::vector<Sent> sent;  ///< by rank; to be read when its loop is over
  std::atomic<int> not_closed = 0;
  std::mutex door;
  std::map<int, std::shared_ptr<Meeting>> split_off;  ///< by colour
};

class CountingTransport final : public Transport {
 public:
  CountingTransport(Transport& lender, Meeting::Sent& sent) : lender_(lender), sent_(sent) {}
  [[nodiscard]] int rank() const noexcept override { return lender_.rank(); }
  [[nodiscard]] int size() const noexcept override { return lender_.size(); }
  [[nodiscard]] Request send(int to, std::span<const std::byte> message) override {
    ++sent_.messages;
    sent_.bytes += message.size();
    return lender_.send(to, message);
  }
  [[nodiscard]] Request receive(int from, std::span<std::byte> message) override {
    return lender_.receive(from, message);
  }

  [[nodiscard]] Open open() noexcept override { return {}; }
  void take_back() noexcept override {}

 private:
  bool test(Handle&) override { return true; }  // requests are the lender's
  void abandon(Handle) noexcept override {}

  Transport& lender_;
  Meeting::Sent& sent_;
};

/// Something that a thread does when it waits for it.
class BlockingOperation final : public LinkOperation {
 public:
  void begin(std::function<void()> work) { work_ = std::move(work); }
  bool arrived() noexcept override { return !work_; }
  void wait() noexcept override { std::exchange(work_, nullptr)(); }

 private:
  std::function<void()> work_;
};

class ThreadLink : public CoordinatorLink {
 public:
  ThreadLink(std::shared_ptr<Meeting> meeting, int rank) : meeting_(std::move(meeting)), rank_(rank) {
    for (auto& stage : mine(meeting_->stages)) stage.resize(4096);
  }
  [[nodiscard]] int rank() const noexcept override { return rank_; }
  [[nodiscard]] int size() const noexcept override { return static_cast<int>(meeting_->words.size()); }
  [[nodiscard]] std::string name_of_rank(int rank) const override { return "rank " + std::to_string(rank); }

  LinkOperation& intersect(std::span<std::uint64_t> words, bool /*eager*/) override {
    agreeing_.begin([this, words] {
      mine(meeting_->words).assign(words.begin(), words.end());
      meet();
      for (const auto& other : meeting_->words)
        for (std::size_t i = 0; i < words.size(); ++i) words[i] &= other[i];
      meet();
    });
    return agreeing_;
  }
  LinkOperation& merge(std::span<std::byte> block) override {
    agreeing_.begin([this, block] {
      Meeting::Sent& sent = mine(meeting_->sent);
      ++sent.merges;
      TreeMerge merge(std::make_unique<CountingTransport>(meeting_->network.end(rank_), sent), block,
                      merge_announcements);
      run_to_end(merge);
    });
    return agreeing_;
  }
  [[nodiscard]] std::span<std::byte> stage(int index) override {
    return mine(meeting_->stages)[static_cast<std::size_t>(index)];
  }
  void start(int stage, ReduceOp op, DType dtype, std::size_t bytes) override {
    reducing_[static_cast<std::size_t>(stage)].begin([=, this] { reduce(stage, {op, dtype, bytes}); });
  }
  LinkOperation& reduction(int stage) override { return reducing_[static_cast<std::size_t>(stage)]; }
  std::unique_ptr<CoordinatorLink> split(int color, int key) override {
    const std::int32_t said[2] = {color, key};
    const auto all = gather(std::as_bytes(std::span(said)));
    std::vector<std::pair<int, int>> members;
    for (int rank = 0; rank < size(); ++rank) {
      std::int32_t other[2];
      std::memcpy(other, all.data() + static_cast<std::size_t>(rank) * sizeof(other), sizeof(other));
      if (other[0] == color) members.emplace_back(other[1], rank);
    }
    std::sort(members.begin(), members.end());
    const auto place = std::find(members.begin(), members.end(), std::pair{key, rank_});
    std::shared_ptr<Meeting> group;
    {
      const std::lock_guard lock(meeting_->door);
      auto& known = meeting_->split_off[color];
      if (known == nullptr) known = std::make_shared<Meeting>(static_cast<int>(members.size()));
      group = known;
    }
    meet();
    return std::make_unique<ThreadLink>(std::move(group), static_cast<int>(place - members.begin()));
  }

 private:
  struct Started {
    ReduceOp op = ReduceOp::sum;
    DType dtype = DType::float32;
    std::size_t bytes = 0;
  };
  void reduce(int stage, const Started& started) {
    const auto index = static_cast<std::size_t>(stage);
    const std::size_t count = started.bytes / size_of(started.dtype);
    meet();
    auto result = meeting_->stages[0][index];
    for (std::size_t rank = 1; rank < meeting_->stages.size(); ++rank)
      combine(started.op, {result.data(), count, started.dtype}, meeting_->stages[rank][index].data());
    meet();
    mine(meeting_->stages)[index] = result;
  }
  std::span<const std::byte> gather(std::span<const std::byte> block) {
    mine(meeting_->blocks).assign(block.begin(), block.end());
    meet();
    gathered_.clear();
    for (const auto& other : meeting_->blocks) gathered_.insert(gathered_.end(), other.begin(), other.end());
    meet();
    return gathered_;
  }
  template <class Value>
  Value& mine(std::vector<Value>& values) const {
    return values[static_cast<std::size_t>(rank_)];
  }
  void meet() { meeting_->all.arrive_and_wait(); }

  std::shared_ptr<Meeting> meeting_;
  int rank_;
  std::vector<std::byte> gathered_;
  BlockingOperation agreeing_;
  std::array<BlockingOperation, stages> reducing_;
};

/// Runs `body` for every rank of a world of threads, each with a loop of its own, and closes these.
inline std::shared_ptr<Meeting> with_loops(int ranks, const std::function<void(CoordinatorLoop&)>& body,
                                           const CoordinatorLoop::Options& options = {}) {
  auto meeting = std::make_shared<Meeting>(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      CoordinatorLoop loop(std::make_unique<ThreadLink>(meeting, rank), options, std::make_shared<Bell>());
      std::thread runner([&] { loop.run(); });
      body(loop);
      try {
        loop.desk().close();
      } catch (const CommunicationError&) {  // where a limit is short
        ++meeting->not_closed;
      }
      runner.join();
    });
  for (auto& thread : threads) thread.join();
  REQUIRE((meeting->not_closed == 0 || options.missing_limit > 0));
  return meeting;
}

inline SubmissionDesk::Receipt sum(CoordinatorLoop& loop, const std::string& name, std::vector<std::int32_t>& values) {
  const Tensor tensor{std::span(values)};
  return loop.desk().submit(name, {}, {&tensor, 1});
}
inline void wait(const SubmissionDesk::Receipt& receipt) { receipt.submission->wait(receipt.number); }

}  // namespace ronda::test
