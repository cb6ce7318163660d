#pragma once
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <ronda/core/device_context.hpp>
#include <ronda/core/tensor.hpp>

namespace ronda::test {

/// How many calls of stand-ins this thread is inside: what these allocate is not the program's.
inline thread_local int inside_fakes = 0;
struct InsideFake {
  InsideFake() noexcept { ++inside_fakes; }
  InsideFake(const InsideFake&) = delete;
  ~InsideFake() { --inside_fakes; }
};

class FakeRecording;

/// A queue of work on a thread of its own, which is as slow as one likes: what does not wait for it finds nothing done.
class FakeStream final : public Stream, public Completion {
 public:
  explicit FakeStream(Device device) : device_(device), thread_([this] { run(); }) {}
  FakeStream(const FakeStream&) = delete;
  ~FakeStream() override;

  void queue(std::function<void()> work);

  [[nodiscard]] Device device() const noexcept override { return device_; }
  Event record() override;
  void wait(const Event& event) override;
  void synchronize() override;
  [[nodiscard]] bool recording() const override { return recording_ || tape_ != nullptr; }
  [[nodiscard]] int threads() const noexcept override { return 1; }

  bool poll(std::uint64_t ticket) override;
  void wait(std::uint64_t ticket) override;
  bool hold(Stream& stream, std::uint64_t ticket) override;

  void set_recording(bool recording) noexcept { recording_ = recording; }
  /// Work that is not done as long as this is not taken back.
  void hang(bool hangs);
  /// Does so many pieces of work more, and none after.
  void hang_after(std::uint64_t pieces);
  /// How often the host has waited for what streams were given.
  [[nodiscard]] int host_waits() const noexcept { return host_waits_; }

 private:
  friend class FakeRecording;
  void run();
  void wait_until_done(std::uint64_t ticket);

  Device device_;
  std::mutex door_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  std::uint64_t queued_ = 0, done_ = 0, last_ = std::numeric_limits<std::uint64_t>::max();
  bool recording_ = false, stopping_ = false, hangs_ = false;
  FakeRecording* tape_ = nullptr;  ///< what it is given goes there
  std::atomic<int> host_waits_{0};
  std::thread thread_;  ///< last: it uses all of the above
};

/// What streams were given while they were recorded: work, marks (events), and waits for marks. As on a GPU one stream
/// is recorded first; another is, once it has waited for a mark, and has to be waited for at the end; and what was not
/// recorded cannot be waited for. It goes before its streams do, and when its replays are over.
class FakeRecording final : public Recording {
 public:
  explicit FakeRecording(FakeStream& first);
  FakeRecording(const FakeRecording&) = delete;
  ~FakeRecording() override;
  void replay(Stream& stream) override;

 private:
  friend class FakeDevice;
  friend class FakeStream;
  struct Item {
    FakeStream* stream;
    std::function<void()> work;  ///< null: a mark, or a wait for one
    std::size_t mark = 0;
    bool waits = false;
  };
  [[nodiscard]] std::size_t mark(FakeStream& stream);
  void wait(FakeStream& stream, std::size_t mark);
  void reach(std::size_t mark);
  void wait_for(std::size_t mark, int replay);
  /// Everybody's work is done again from here on.
  void end() noexcept;
  /// Throws LogicError where the first stream does not wait for all that others were given.
  void require_joined() const;

  FakeStream& first_;
  int replays_ = 0;
  bool ended_ = false;
  std::vector<FakeStream*> streams_;
  std::vector<Item> items_;
  std::vector<std::size_t> item_of_mark_;
  std::mutex door_;
  std::condition_variable changed_;
  std::vector<int> reached_;  ///< by mark: in how many replays
};

/// A device whose memory is the host's, though nobody else may look at it, and whose work is done late.
class FakeDevice final : public DeviceContext {
 public:
  explicit FakeDevice(std::string identity) : identity_(std::move(identity)) {}

  [[nodiscard]] Device device() const noexcept override { return {DeviceKind::cuda, 0}; }
  [[nodiscard]] std::string name() const override { return "fake"; }
  [[nodiscard]] std::string identity() const override { return identity_; }
  [[nodiscard]] std::size_t free_bytes() override { return free_memory; }
  std::unique_ptr<Stream> make_stream(StreamPriority priority) override;
  Buffer allocate(std::size_t bytes) override;
  Buffer allocate_staging(std::size_t bytes) override;
  std::shared_ptr<const void> pin(std::span<std::byte> memory) override;
  void clear(void* memory, std::size_t bytes, Stream& stream) override;
  void copy(const void* from, void* to, std::size_t bytes, Stream& stream) override;
  void add(const Tensor& from, const float* more, const Tensor& to, Stream& stream) override;
  std::unique_ptr<DeviceHash> make_hash(std::span<const std::span<const std::byte>> pieces) override;
  std::unique_ptr<Recording> record(Stream& stream, const std::function<void()>& work) override;

  /// As long as what is returned, this memory is the device's, or pinned: copies need not wait for it.
  [[nodiscard]] std::shared_ptr<const void> know(const void* memory, std::size_t bytes);

  int pinned = 0;                                  ///< pieces of memory that are
  bool refuses_pins = false;                       ///< as where the system limits them
  std::size_t free_memory = std::size_t{1} << 30;  ///< bytes; nothing is taken off
  std::size_t bytes_copied = 0;
  int high_priority_streams = 0;
  int recordings = 0;

 private:
  using Known = std::multimap<const std::byte*, std::size_t>;  ///< bytes, by where they begin
  [[nodiscard]] bool knows(const void* memory) const;

  std::string identity_;
  std::shared_ptr<Known> known_ = std::make_shared<Known>();
};

/// `count` floats of `buffer`, on its device.
[[nodiscard]] Tensor floats_in(const Buffer& buffer, std::size_t count, std::size_t first = 0);

}  // namespace ronda::test
