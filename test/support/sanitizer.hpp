#pragma once

namespace ronda::test {

#ifdef __SANITIZE_THREAD__
constexpr bool watched_for_races = true;
#else
constexpr bool watched_for_races = false;
#endif
#ifdef RONDA_ADDRESS_SANITIZER  // tests are linked with it, but not compiled
constexpr bool sanitized = true;
#else
constexpr bool sanitized = watched_for_races;
#endif
// All takes several times as long then, ten times under ThreadSanitizer. What matters is who touches what, and when;
// numbers that came out right elsewhere need not come out again.

}  // namespace ronda::test
