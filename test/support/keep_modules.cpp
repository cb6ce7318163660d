// In every test program under AddressSanitizer: the plug-ins that MPI closes at its end stay in memory, so that a leak
// of theirs has a name to be known by. (Otherwise each allocation would have to note its whole stack, which takes as
// long as the tests.)
#include <dlfcn.h>

extern "C" int dlclose(void*) noexcept { return 0; }
