#pragma once
#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/collectives/nccl/nccl_library.hpp>

#include "support/fake_device.hpp"

namespace ronda::test {

/// Stands in for NCCL: writes down how it is called, answers as it was told to, and, where it has a way to the other
/// ranks, does what was asked for: at once, the host waiting for the stream; or, where it knows of a device, in the
/// order of the stream, which needs a way that any thread may go. One object a rank.
class FakeNccl : public nccl::Library {
 public:
  using Gather = std::function<std::vector<std::string>(std::string_view)>;
  /// @param others  null: collectives are only written down
  explicit FakeNccl(Gather others = {}, std::shared_ptr<FakeDevice> device = nullptr)
      : others_(std::move(others)), device_(std::move(device)) {}

  // What it is told to answer.
  nccl::Answer identifier, start, memory, window, queueing;  ///< where they are no success: to the call of that name
  std::string version_number = "2.28.9";
  bool windows_look_open = false;      ///< as NCCL 2.28's: the call says so while the window is being opened
  int looks_until_over = 0;            ///< at what is in progress; -1: it never is
  std::function<void()> when_aborted;  ///< ends what waits for others
  std::atomic<nccl::Status> trouble{nccl::Status::success};  ///< comes up beside everything

  [[nodiscard]] std::vector<std::string> calls() const;
  [[nodiscard]] int count(std::string_view call) const;
  [[nodiscard]] int memory_in_use() const noexcept { return memory_in_use_; }

  [[nodiscard]] std::string version() const override { return version_number; }
  nccl::Answer make_unique_id(nccl::UniqueId& id) override;
  nccl::Answer init(nccl::Comm& comm, int ranks, const nccl::UniqueId& id, int rank) override;
  nccl::Answer state(nccl::Comm comm) override;
  void abort(nccl::Comm comm) noexcept override;
  nccl::Answer allocate(void** memory, std::size_t bytes) override;
  void free(void* memory) noexcept override;
  nccl::Answer open_window(nccl::Comm comm, void* memory, std::size_t bytes, nccl::Window& window) override;
  void close_window(nccl::Comm comm, nccl::Window window) noexcept override;
  nccl::Answer group_start() override;
  nccl::Answer group_end() override;
  nccl::Answer all_reduce(nccl::Comm comm, std::byte* data, std::size_t count, DType dtype, ReduceOp op,
                          Stream& stream) override;
  nccl::Answer broadcast(nccl::Comm comm, std::byte* data, std::size_t count, DType dtype, int root,
                         Stream& stream) override;
  nccl::Answer reduce(nccl::Comm comm, std::byte* data, std::size_t count, DType dtype, ReduceOp op, int root,
                      Stream& stream) override;
  nccl::Answer all_gather(nccl::Comm comm, std::byte* all, std::size_t count, DType dtype, int rank,
                          Stream& stream) override;
  nccl::Answer reduce_scatter(nccl::Comm comm, std::byte* all, std::size_t count, DType dtype, ReduceOp op, int rank,
                              Stream& stream) override;

 private:
  nccl::Answer say(std::string call, const nccl::Answer& answer);
  void finish_writing() noexcept;
  nccl::Answer queue(std::string call, nccl::Comm comm, Stream& stream, std::function<void()> work);
  [[nodiscard]] std::string reduced(std::byte* data, std::size_t count, DType dtype, ReduceOp op);

  Gather others_;  ///< of nobody, where the others are given up
  std::shared_ptr<FakeDevice> device_;
  std::map<void*, std::shared_ptr<const void>> known_;  ///< memory, to the device
  int rank_ = 0;
  std::atomic<int> looks_{0};
  std::atomic<bool> in_progress_{false};
  nccl::Comm* connecting_ = nullptr;  ///< where NCCL's thread will write at the end of a call in progress
  nccl::Window* opening_ = nullptr;   ///< likewise
  nccl::Window opened_ = nullptr;
  int grouped_ = 0;
  std::vector<std::function<void()>> group_;
  std::atomic<int> memory_in_use_{0};
  mutable std::mutex door_;
  std::vector<std::string> calls_;
};

}  // namespace ronda::test
