// In every test program under AddressSanitizer.
#include <dlfcn.h>

/// The plug-ins that MPI closes at its end stay in memory, so that a leak of theirs has a name to be known by.
/// (Otherwise each allocation would have to note its whole stack, which takes as long as the tests.)
extern "C" int dlclose(void*) noexcept { return 0; }

/// Undefined behaviour ends the program by an illegal instruction. AddressSanitizer says at which line; the handler of
/// Catch, which would come first, says only in which test.
extern "C" const char* __asan_default_options() noexcept { return "handle_sigill=2"; }
