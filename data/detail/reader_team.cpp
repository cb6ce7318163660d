#include <ronda/data/detail/reader_team.hpp>

#include <utility>

namespace ronda {

ReaderTeam::ReaderTeam(std::size_t readers) {
  for (std::size_t reader = 1; reader < readers; ++reader) threads_.emplace_back([this, reader] { serve(reader); });
}

ReaderTeam::~ReaderTeam() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ReaderTeam::run(std::size_t count, FunctionRef<void(std::size_t reader, std::size_t i)> work) {
  std::unique_lock lock(mutex_);
  work_ = &work;
  next_ = 0;
  count_ = count;
  if (count > 1) changed_.notify_all();
  take_part(0, lock);
  changed_.wait(lock, [&] { return at_work_ == 0; });
  work_ = nullptr;
  if (const std::exception_ptr failure = std::exchange(failure_, nullptr)) std::rethrow_exception(failure);
}

void ReaderTeam::serve(std::size_t reader) {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || (work_ != nullptr && next_ < count_); });
    if (stopping_) return;
    take_part(reader, lock);
  }
}

void ReaderTeam::take_part(std::size_t reader, std::unique_lock<std::mutex>& lock) {
  ++at_work_;
  while (next_ < count_) {
    const std::size_t i = next_++;
    lock.unlock();
    std::exception_ptr failure;
    try {
      (*work_)(reader, i);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (failure && (!failure_ || i < failed_)) {
      failed_ = i;
      failure_ = failure;
    }
  }
  if (--at_work_ == 0) changed_.notify_all();
}

}  // namespace ronda
