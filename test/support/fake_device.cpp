#include "support/fake_device.hpp"

#include <ronda/runtime/core/error.hpp>
#include <ronda/runtime/core/tensor.hpp>

#include <chrono>
#include <cstring>
#include <utility>

namespace ronda::test {

FakeStream::~FakeStream() {
  {
    const std::lock_guard door(door_);
    stopping_ = true;
    hangs_ = false;
  }
  changed_.notify_all();
  thread_.join();
}

void FakeStream::queue(std::function<void()> work) {
  {
    const std::lock_guard door(door_);
    work_.push_back(std::move(work));
    ++queued_;
  }
  changed_.notify_all();
}

Event FakeStream::record() {
  const std::lock_guard door(door_);
  return {*this, queued_};
}

void FakeStream::wait(const Event& event) {
  if (event.hold(*this)) return;
  event.wait();
}

bool FakeStream::poll(std::uint64_t ticket) {
  const std::lock_guard door(door_);
  return done_ >= ticket;
}

void FakeStream::wait(std::uint64_t ticket) {
  std::unique_lock door(door_);
  changed_.wait(door, [&] { return done_ >= ticket; });
}

bool FakeStream::hold(Stream& stream, std::uint64_t ticket) {
  if (auto* other = dynamic_cast<FakeStream*>(&stream); other != nullptr && other != this)
    other->queue([this, ticket] { wait(ticket); });
  return dynamic_cast<FakeStream*>(&stream) != nullptr;
}

void FakeStream::hang(bool hangs) {
  {
    const std::lock_guard door(door_);
    hangs_ = hangs;
  }
  changed_.notify_all();
}

void FakeStream::run() {
  for (;;) {
    std::function<void()> work;
    {
      std::unique_lock door(door_);
      changed_.wait(door, [&] { return (stopping_ && work_.empty()) || (!work_.empty() && !hangs_); });
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

std::unique_ptr<Stream> FakeDevice::make_stream(StreamPriority priority) {
  high_priority_streams += priority == StreamPriority::high ? 1 : 0;
  return std::make_unique<FakeStream>(device());
}

Buffer FakeDevice::allocate(std::size_t bytes) {
  auto memory = std::make_shared<std::vector<std::byte>>(bytes);
  std::byte* data = memory->data();
  return {data, bytes, device(), std::move(memory)};
}

Buffer FakeDevice::allocate_staging(std::size_t bytes) { return Buffer::host(bytes); }

std::shared_ptr<const void> FakeDevice::pin(std::span<std::byte>) {
  if (refuses_pins) throw ResourceError("cannot pin memory");
  ++pinned;
  return {static_cast<void*>(this), [this](const void*) { --pinned; }};
}

void FakeDevice::clear(void* memory, std::size_t bytes, Stream& stream) {
  dynamic_cast<FakeStream&>(stream).queue([=] { std::memset(memory, 0, bytes); });
}

void FakeDevice::copy(const void* from, void* to, std::size_t bytes, Stream& stream) {
  bytes_copied += bytes;
  dynamic_cast<FakeStream&>(stream).queue([=] { std::memcpy(to, from, bytes); });
}

Tensor floats_in(const Buffer& buffer, std::size_t count, std::size_t first) {
  return {{Shape{static_cast<std::int64_t>(count)}, DType::float32, {}},
          buffer.data() + first * sizeof(float),
          buffer.device()};
}

}  // namespace ronda::test
