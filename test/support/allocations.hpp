#pragma once

namespace ronda::test {

/// How often this process has called operator new so far. For programs with `core/allocations.cpp` among their sources.
[[nodiscard]] long allocations();

}  // namespace ronda::test
