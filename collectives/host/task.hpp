#pragma once
#include <coroutine>
#include <cstddef>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

namespace ronda {

class Task;

/// Something a task waits for: a message, the other ranks of a node. `co_await` it.
class Awaitable {
 public:
  /// True when it has come, or when it failed: `finish` tells.
  virtual bool arrived() noexcept = 0;
  /// Called once it arrived. Throws what it failed with.
  virtual void finish() {}
  /// The ranks of the world that it still waits for, if they are known; for messages.
  [[nodiscard]] virtual std::vector<int> missing() { return {}; }

  bool await_ready() noexcept { return arrived(); }
  inline void await_suspend(std::coroutine_handle<> waiting) noexcept;
  void await_resume() { finish(); }

 protected:
  Awaitable() = default;
  Awaitable(const Awaitable&) = delete;  // it is waited for where it stands
  ~Awaitable() = default;
};

/// Memory for the frame of one coroutine, which is used again for each of its runs.
class FrameStorage {
 public:
  void* take(std::size_t bytes) {
    if (bytes > bytes_) {
      memory_ = std::make_unique<std::byte[]>(bytes);
      bytes_ = bytes;
    }
    return memory_.get();
  }

 private:
  std::unique_ptr<std::byte[]> memory_;
  std::size_t bytes_ = 0;
};

/// Owns the frame in which its coroutine runs, one run at a time.
class FrameOwner {
 public:
  FrameStorage& frame() noexcept { return frame_; }

 private:
  FrameStorage frame_;
};

/// One run of a collective, written as a coroutine: straight-line text that stops at each `co_await` until what it
/// waits for has arrived. Made suspended; `advance` runs it on. A task may await another task, which then runs in its
/// place.
///
/// The coroutine is a member function of a FrameOwner, whose storage holds the frame: no run takes memory from the
/// heap, except the first.
class [[nodiscard]] Task {
 public:
  struct promise_type;
  using Handle = std::coroutine_handle<promise_type>;

  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Task() {
    if (handle_) handle_.destroy();
  }

  [[nodiscard]] bool done() const noexcept { return handle_.done(); }
  /// Runs on where what it waits for has arrived, as far as it gets. False when it did not move.
  inline bool advance();
  /// Throws what a task that is done ended with.
  inline void result() const;
  /// What it waits for; null where it can run on.
  [[nodiscard]] inline Awaitable* awaited() const noexcept;

  bool await_ready() const noexcept { return false; }
  inline Handle await_suspend(Handle caller) noexcept;
  void await_resume() const { result(); }

 private:
  explicit Task(Handle handle) : handle_(handle) {}

  Handle handle_;
};

struct Task::promise_type {
  Task get_return_object() noexcept { return Task(Handle::from_promise(*this)); }
  std::suspend_always initial_suspend() noexcept { return {}; }
  void return_void() noexcept {}
  void unhandled_exception() noexcept { error = std::current_exception(); }

  /// At its end a task that another one awaits hands over to it.
  struct HandOver {
    bool await_ready() noexcept { return false; }
    std::coroutine_handle<> await_suspend(Handle finished) noexcept {
      promise_type& promise = finished.promise();
      if (!promise.caller) return std::noop_coroutine();
      promise.root->innermost = promise.caller;
      return promise.caller;
    }
    void await_resume() noexcept {}
  };
  HandOver final_suspend() noexcept { return {}; }

  /// @param owner  the object whose member function this is; then the function's arguments
  template <class... Arguments>
  static void* operator new(std::size_t bytes, FrameOwner& owner, const Arguments&...) {
    return owner.frame().take(bytes);
  }
  static void operator delete(void* /*frame*/, std::size_t /*bytes*/) noexcept {}  // the owner keeps it

  promise_type* root = this;                       ///< of the task that the engine runs
  Handle innermost = Handle::from_promise(*this);  ///< in the root: which of the nested tasks runs
  Handle caller;                                   ///< the task that awaits this one
  Awaitable* awaited = nullptr;
  std::exception_ptr error;
};

inline void Awaitable::await_suspend(std::coroutine_handle<> waiting) noexcept {
  Task::Handle::from_address(waiting.address()).promise().awaited = this;
}

inline bool Task::advance() {
  const Handle running = handle_.promise().innermost;
  Awaitable*& awaited = running.promise().awaited;
  if (awaited != nullptr && !awaited->arrived()) return false;
  awaited = nullptr;
  running.resume();
  return true;
}

inline Awaitable* Task::awaited() const noexcept { return handle_.promise().innermost.promise().awaited; }

inline void Task::result() const {
  if (handle_.promise().error) std::rethrow_exception(handle_.promise().error);
}

inline Task::Handle Task::await_suspend(Handle caller) noexcept {
  promise_type& promise = handle_.promise();
  promise.caller = caller;
  promise.root = caller.promise().root;
  promise.root->innermost = handle_;
  return handle_;
}

}  // namespace ronda
