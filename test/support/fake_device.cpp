#include "support/fake_device.hpp"

#include <ronda/core/error.hpp>
#include <ronda/core/number.hpp>
#include <ronda/core/tensor.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iterator>
#include <utility>

#include "support/host_hash.hpp"

namespace ronda::test {
namespace {

/// In the tickets of events that stand in a recording.
constexpr std::uint64_t recorded_ticket = std::uint64_t{1} << 63;

void require_asked_for(std::uint64_t ticket) {
  if ((ticket & recorded_ticket) != 0) throw LogicError("an event of a recording was asked whether it has happened");
}

FakeStream& fake(Stream& stream) { return dynamic_cast<FakeStream&>(stream); }

}  // namespace

// ---- streams --------------------------------------------------------------------------------------------------------

FakeStream::~FakeStream() {
  {
    const std::lock_guard door(door_);
    stopping_ = true;
    hangs_ = false;
    last_ = std::numeric_limits<std::uint64_t>::max();
  }
  changed_.notify_all();
  thread_.join();
}

void FakeStream::queue(std::function<void()> work) {
  const InsideFake inside;
  if (tape_ != nullptr) return tape_->items_.push_back({this, std::move(work)});
  {
    const std::lock_guard door(door_);
    work_.push_back(std::move(work));
    ++queued_;
  }
  changed_.notify_all();
}

Event FakeStream::record() {
  const InsideFake inside;
  if (tape_ != nullptr) return {*this, recorded_ticket | tape_->mark(*this)};
  const std::lock_guard door(door_);
  return {*this, queued_};
}

void FakeStream::wait(const Event& event) {
  if (event.hold(*this)) return;
  ++host_waits_;
  event.wait();
}

void FakeStream::synchronize() {
  if (tape_ != nullptr) throw LogicError("a stream was waited for while it was recorded");
  ++host_waits_;
  wait_until_done(queued_);
}

bool FakeStream::poll(std::uint64_t ticket) {
  require_asked_for(ticket);
  const std::lock_guard door(door_);
  return done_ >= ticket;
}

void FakeStream::wait(std::uint64_t ticket) {
  require_asked_for(ticket);
  if (inside_fakes == 0) ++host_waits_;
  wait_until_done(ticket);
}

void FakeStream::wait_until_done(std::uint64_t ticket) {
  std::unique_lock door(door_);
  changed_.wait(door, [&] { return done_ >= ticket; });
}

bool FakeStream::hold(Stream& stream, std::uint64_t ticket) {
  const InsideFake inside;
  auto* other = dynamic_cast<FakeStream*>(&stream);
  if (other == nullptr) return false;
  if ((ticket & recorded_ticket) != 0) {
    if (tape_ == nullptr) throw LogicError("a stream was to wait for an event of a recording that is over");
    tape_->wait(*other, ticket & ~recorded_ticket);
  } else if (other->tape_ != nullptr) {
    throw LogicError("a stream that is recorded was to wait for what is not");
  } else if (other != this) {
    other->queue([this, ticket] { wait(ticket); });
  }
  return true;
}

void FakeStream::hang(bool hangs) {
  {
    const std::lock_guard door(door_);
    hangs_ = hangs;
  }
  changed_.notify_all();
}

void FakeStream::hang_after(std::uint64_t pieces) {
  const std::lock_guard door(door_);
  last_ = queued_ + pieces;
}

void FakeStream::run() {
  const InsideFake inside;
  for (;;) {
    std::function<void()> work;
    {
      std::unique_lock door(door_);
      changed_.wait(door, [&] { return (stopping_ && work_.empty()) || (!work_.empty() && !hangs_ && done_ < last_); });
      if (work_.empty()) return;
      work = std::move(work_.front());
      work_.pop_front();
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    work();
    {
      const std::lock_guard door(door_);
      ++done_;
    }
    changed_.notify_all();
  }
}

// ---- recordings -----------------------------------------------------------------------------------------------------

FakeRecording::FakeRecording(FakeStream& first) : first_(first), streams_{&first} { first.tape_ = this; }

FakeRecording::~FakeRecording() {
  end();
  const InsideFake inside;
  for (FakeStream* stream : streams_) stream->record().wait();  // they use its marks
}

std::size_t FakeRecording::mark(FakeStream& stream) {
  item_of_mark_.push_back(items_.size());
  items_.push_back({&stream, nullptr, item_of_mark_.size() - 1, false});
  return item_of_mark_.size() - 1;
}

void FakeRecording::wait(FakeStream& stream, std::size_t mark) {
  if (items_[item_of_mark_[mark]].stream == &stream) return;
  if (stream.tape_ == nullptr) {
    stream.tape_ = this;
    streams_.push_back(&stream);
  }
  items_.push_back({&stream, nullptr, mark, true});
}

void FakeRecording::end() noexcept {
  if (ended_) return;
  for (FakeStream* stream : streams_) stream->tape_ = nullptr;
  ended_ = true;
}

void FakeRecording::require_joined() const {
  std::map<const FakeStream*, std::size_t> waited_up_to;  // items, by whose they are
  for (const Item& item : items_)
    if (item.stream == &first_ && item.waits) {
      const std::size_t marked = item_of_mark_[item.mark];
      auto& known = waited_up_to[items_[marked].stream];
      known = std::max(known, marked);
    }
  for (std::size_t i = 0; i < items_.size(); ++i) {
    const bool mark = items_[i].work == nullptr && !items_[i].waits;
    if (items_[i].stream != &first_ && !mark && waited_up_to[items_[i].stream] < i)
      throw LogicError("a stream was recorded, and not waited for by the one that was recorded first");
  }
}

void FakeRecording::reach(std::size_t mark) {
  {
    const std::lock_guard door(door_);
    ++reached_[mark];
  }
  changed_.notify_all();
}

void FakeRecording::wait_for(std::size_t mark, int replay) {
  std::unique_lock door(door_);
  changed_.wait(door, [&] { return reached_[mark] >= replay; });
}

void FakeRecording::replay(Stream& stream) {
  const InsideFake inside;
  if (&stream != &first_) throw LogicError("a recording was replayed in another stream than it was recorded in");
  ++replays_;
  for (const Item& item : items_) {
    if (item.work != nullptr)
      item.stream->queue(item.work);
    else if (item.waits)
      item.stream->queue([this, mark = item.mark, replay = replays_] { wait_for(mark, replay); });
    else
      item.stream->queue([this, mark = item.mark] { reach(mark); });
  }
}

// ---- the device -----------------------------------------------------------------------------------------------------

std::unique_ptr<Stream> FakeDevice::make_stream(StreamPriority priority) {
  high_priority_streams += priority == StreamPriority::high ? 1 : 0;
  return std::make_unique<FakeStream>(device());
}

std::shared_ptr<const void> FakeDevice::know(const void* memory, std::size_t bytes) {
  const auto place = known_->emplace(static_cast<const std::byte*>(memory), bytes);
  return {memory, [known = known_, place](const void*) { known->erase(place); }};
}

bool FakeDevice::knows(const void* memory) const {
  const auto* at = static_cast<const std::byte*>(memory);
  const auto after = known_->upper_bound(at);
  return after != known_->begin() && at < std::prev(after)->first + std::prev(after)->second;
}

Buffer FakeDevice::allocate(std::size_t bytes) {
  auto memory = std::make_shared<Buffer>(Buffer::host(bytes));
  std::byte* data = memory->data();
  return {data, bytes, device(),
          std::make_shared<std::pair<std::shared_ptr<Buffer>, std::shared_ptr<const void>>>(memory, know(data, bytes))};
}

Buffer FakeDevice::allocate_staging(std::size_t bytes) {
  auto memory = std::make_shared<Buffer>(Buffer::host(bytes));
  std::byte* data = memory->data();
  return {data, bytes, Device{},
          std::make_shared<std::pair<std::shared_ptr<Buffer>, std::shared_ptr<const void>>>(memory, know(data, bytes))};
}

std::shared_ptr<const void> FakeDevice::pin(std::span<std::byte> memory) {
  if (refuses_pins) throw ResourceError("cannot pin memory");
  ++pinned;
  return {static_cast<void*>(this), [this, known = know(memory.data(), memory.size())](const void*) { --pinned; }};
}

void FakeDevice::clear(void* memory, std::size_t bytes, Stream& stream) {
  fake(stream).queue([=] { std::memset(memory, 0, bytes); });
}

void FakeDevice::copy(const void* from, void* to, std::size_t bytes, Stream& stream) {
  const InsideFake inside;
  bytes_copied += bytes;
  if (bytes == 0) return;
  const bool at_once = !knows(from) || !knows(to);
  if (at_once && stream.recording()) throw LogicError("a copy of memory that is not pinned was recorded");
  fake(stream).queue([=] { std::memcpy(to, from, bytes); });
  if (at_once) stream.record().wait();
}

void FakeDevice::add(const Tensor& from, const float* more, const Tensor& to, Stream& stream) {
  const InsideFake inside;
  fake(stream).queue([=] {
    std::vector<float> sums = floats_of(Tensor(from.desc(), from.data()));
    if (more != nullptr) std::transform(sums.begin(), sums.end(), more, sums.begin(), std::plus());
    convert(Tensor({from.shape(), DType::float32, from.desc().layout}, sums.data()), Tensor(to.desc(), to.data()));
  });
}

std::unique_ptr<DeviceHash> FakeDevice::make_hash(std::span<const std::span<const std::byte>> pieces) {
  class QueuedHash final : public DeviceHash {
   public:
    explicit QueuedHash(std::span<const std::span<const std::byte>> memory) : hash_(memory) {}
    void run(std::span<std::uint64_t> hashes, Stream& stream) override {
      fake(stream).queue([this, hashes] { hash_.run(hashes); });
      stream.synchronize();
    }

   private:
    HostHash hash_;
  };
  return std::make_unique<QueuedHash>(pieces);
}

std::unique_ptr<Recording> FakeDevice::record(Stream& stream, const std::function<void()>& work) {
  auto recording = std::make_unique<FakeRecording>(fake(stream));
  work();
  recording->end();
  recording->require_joined();
  recording->reached_.resize(recording->item_of_mark_.size());
  ++recordings;
  return recording;
}

Tensor floats_in(const Buffer& buffer, std::size_t count, std::size_t first) {
  return {{Shape{static_cast<std::int64_t>(count)}, DType::float32, {}},
          buffer.data() + first * sizeof(float),
          buffer.device()};
}

}  // namespace ronda::test
