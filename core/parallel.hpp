#pragma once
#include <cstddef>
#include <string>
#include <type_traits>

#include <ronda/core/message.hpp>

namespace ronda {

/// A half-open range of indices.
struct Range {
  std::size_t begin = 0, end = 0;
  [[nodiscard]] constexpr std::size_t size() const noexcept { return end - begin; }
  bool operator==(const Range&) const = default;
};
/// The range of worker `index` of `workers` in `count` items: contiguous, as even as possible, deterministic. Ranks
/// share a global batch by the same rule.
[[nodiscard]] constexpr Range part_of(std::size_t count, std::size_t index, std::size_t workers) noexcept {
  const std::size_t base = count / workers, extra = count % workers;  // no product that could overflow
  const auto begin_of = [&](std::size_t i) { return i * base + (i * extra) / workers; };
  return {begin_of(index), begin_of(index + 1)};
}
/// The intersection; empty if there is none.
[[nodiscard]] constexpr Range overlap_of(const Range& a, const Range& b) noexcept {
  const std::size_t begin = a.begin > b.begin ? a.begin : b.begin, end = a.end < b.end ? a.end : b.end;
  return {begin, begin > end ? begin : end};
}

namespace detail {
using RangeFunction = void (*)(void* context, Range range);
void parallel_ranges(int threads, std::size_t count, RangeFunction function, void* context);
}  // namespace detail

/// Calls `body(Range)` on `threads` threads, each with its part of [0, count); the partition depends only on the
/// arguments, so results are the same in every run. Returns when all are done. `body` must not throw. The threads are
/// OpenMP's, shared with the library primitives, so that no core runs two. Ranges begin at multiples of `align`.
template <class Body>
void parallel_for(int threads, std::size_t count, Body&& body, std::size_t align = 1) {
  if (threads <= 1 || count <= align) {
    if (count > 0) body(Range{0, count});
    return;
  }
  struct Context {
    std::remove_reference_t<Body>& body;
    std::size_t count, align;
  } context{body, count, align};
  detail::parallel_ranges(
      threads, (count + align - 1) / align,
      [](void* opaque, Range range) {
        auto& c = *static_cast<Context*>(opaque);
        const std::size_t end = range.end * c.align;
        c.body(Range{range.begin * c.align, end < c.count ? end : c.count});
      },
      &context);
}

/// The number of threads that a rank computes with.
struct ThreadCount {
  int count = 1;
  Message note{};  ///< the setting that limits `count` below `asked` or the cores, and the remedy; empty: none
};
/// The rule for every program: `asked` unless 0, else OMP_NUM_THREADS if set, else one thread per core; at most as many
/// as OpenMP grants (OMP_THREAD_LIMIT, OMP_MAX_ACTIVE_LEVELS).
/// @param cores  cores of this rank
[[nodiscard]] ThreadCount count_threads(int asked, int cores);

/// Sets the number of threads of the calling thread's parallel work, in our loops and in the library primitives. Call
/// it before primitives are planned, on the thread that runs them. OpenMP then grants each team this many threads.
/// (With OMP_DYNAMIC the grant could shrink between steps: primitives planned for more threads would then compute wrong
/// numbers or hang.) Throws InputError if OpenMP grants fewer.
void use_threads(int threads);

/// Lets the calling thread, and threads and processes that it starts later, run on all cores of this process: with
/// OMP_PROC_BIND or OMP_PLACES, OpenMP binds the first thread to one place when the program is loaded. The other
/// threads of OpenMP stay bound. For applications: call it first in main, on the first thread.
void unbind_first_thread();

/// Shortens the time that waiting OpenMP threads spin before they sleep. OpenMP's default is many milliseconds, during
/// which a core runs no other thread: on a machine with other work training is then several times slower.
/// OpenMP reads the time when a program is loaded. So this starts the program again, in the same process and with the
/// same arguments, if it may run on several cores and the environment does not set the time (OMP_WAIT_POLICY or
/// GOMP_SPINCOUNT). A program that was started through the dynamic loader (`ld-linux.so --library-path DIR program`) is
/// started through it again. If the program cannot be started again, it continues unchanged. For applications: call it
/// first in main.
/// @param arguments  main's, with the null pointer at the end
void spin_briefly(char** arguments);

}  // namespace ronda
