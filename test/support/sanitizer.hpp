#pragma once

extern "C" [[gnu::weak]] void __asan_init();  // NOLINT(bugprone-reserved-identifier): AddressSanitizer's name

namespace ronda::test {

#ifdef __SANITIZE_THREAD__
constexpr bool watched_for_races = true;
#else
constexpr bool watched_for_races = false;
#endif
/// Programs are linked with AddressSanitizer, of which the tests' own code, compiled without, knows by this alone.
inline const bool sanitized = watched_for_races || __asan_init != nullptr;
// All takes several times as long then, ten times under ThreadSanitizer. What matters is who touches what, and when;
// numbers that came out right elsewhere need not come out again.

}  // namespace ronda::test
