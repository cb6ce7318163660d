#include <ronda/runtime/checkpoint/background.hpp>

#include <pthread.h>

#include <csignal>
#include <utility>

namespace ronda {

void Background::submit(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
  }
  changed_.notify_one();
}

bool Background::step() {
  std::function<void()> work;
  {
    const std::lock_guard lock(mutex_);
    if (queue_.empty()) return false;
    work = std::move(queue_.front());
    queue_.pop_front();
  }
  work();
  return true;
}

bool Background::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return closed_ || !queue_.empty(); });
  return !queue_.empty();
}

void Background::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_one();
}

BackgroundThread::BackgroundThread(Background& work) : work_(work) {
  // Signals are for the thread that trains: none interrupts the writing.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] {
    while (work_.wait()) work_.step();
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

BackgroundThread::~BackgroundThread() {
  work_.close();
  thread_.join();
}

}  // namespace ronda
