#pragma once
#include <cstdint>
#include <utility>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace ronda {

/// During its lifetime this thread treats denormal numbers (float32: magnitudes below 1.2e-38) as zero, in operands and
/// in results; with `flush` false it computes with them as IEEE 754 requires. The destructor restores the previous
/// mode.
///
/// Momentum and Adam's averages of a weight whose gradient is zero shrink with each step until they are denormal, with
/// which processors compute a hundred times slower. Training loses nothing: adding a denormal number to a number of
/// usual magnitude does not change it.
///
/// x86: the bits FTZ and DAZ of MXCSR (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, 10.2.3);
/// Arm: FZ of FPCR. The two architectures differ for a result that rounds up to the smallest normal number, so their
/// bits may differ there. On other processors this class has no effect.
class DenormalScope {
 public:
  explicit DenormalScope(bool flush) noexcept
      : before_(control() & bits), wanted_(flush ? bits : 0), outer_flushes_(std::exchange(flushing_scope_, flush)) {
    if (before_ != wanted_) set(wanted_);
  }
  DenormalScope(const DenormalScope&) = delete;
  ~DenormalScope() {
    flushing_scope_ = outer_flushes_;
    if (before_ != wanted_) set(before_);
  }

  /// Whether this thread flushes denormal numbers to zero now.
  [[nodiscard]] static bool flushes() noexcept { return bits != 0 && (control() & bits) == bits; }
  /// Whether the innermost scope of this thread flushes; a mode that the program set by other means does not count.
  /// Costs one load, while `flushes` takes some nanoseconds.
  [[nodiscard]] static bool in_flushing_scope() noexcept { return flushing_scope_; }

 private:
  friend class FlushDenormals;
#if defined(__x86_64__)
  static constexpr std::uint64_t bits = 1U << 15 | 1U << 6;
  [[nodiscard]] static std::uint64_t control() noexcept { return _mm_getcsr(); }
  static void set_control(std::uint64_t value) noexcept { _mm_setcsr(static_cast<unsigned>(value)); }
#elif defined(__aarch64__)
  static constexpr std::uint64_t bits = std::uint64_t{1} << 24;
  [[nodiscard]] static std::uint64_t control() noexcept {
    std::uint64_t value;
    __asm__ volatile("mrs %0, fpcr" : "=r"(value));
    return value;
  }
  static void set_control(std::uint64_t value) noexcept { __asm__ volatile("msr fpcr, %0" : : "r"(value)); }
#else
  static constexpr std::uint64_t bits = 0;
  [[nodiscard]] static std::uint64_t control() noexcept { return 0; }
  static void set_control(std::uint64_t) noexcept {}
#endif

  /// Keeps the other bits of the register, such as the raised exceptions.
  static void set(std::uint64_t wanted) noexcept { set_control((control() & ~bits) | wanted); }

  static inline constinit thread_local bool flushing_scope_ = false;

  std::uint64_t before_, wanted_;  ///< if equal, the register is read once and not written
  bool outer_flushes_;
};

/// During its lifetime denormal numbers are zero for this thread and for its OpenMP team of `threads` threads, which
/// compute in parallel_for and in the library's primitives. The destructor gives the team the mode that this thread had
/// before. Has no effect inside another such scope.
class FlushDenormals {
 public:
  /// Throws LogicError if OpenMP grants a smaller team (see use_threads): the library's primitives would compute wrong
  /// numbers with it, or hang.
  explicit FlushDenormals(int threads);
  FlushDenormals(const FlushDenormals&) = delete;
  ~FlushDenormals();

 private:
  int team_;  ///< threads whose mode was set; 0: only this thread, or it was already set
  DenormalScope own_;
};

}  // namespace ronda
