#pragma once

namespace ronda::test {

/// Under ThreadSanitizer, where all takes ten times as long: what matters there is who touches what and when, so
/// numbers that came out right elsewhere need not come out again.
#ifdef __SANITIZE_THREAD__
constexpr bool watched_for_races = true;
#else
constexpr bool watched_for_races = false;
#endif

}  // namespace ronda::test
