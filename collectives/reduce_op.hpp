#pragma once
#include <cstdint>

namespace ronda {
enum class ReduceOp : std::uint8_t { sum };
}
