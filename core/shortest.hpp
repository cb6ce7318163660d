#pragma once
#include <string>

namespace ronda {

/// The shortest decimal digits that read back to the same number: `0.1`, `1e-40`.
[[nodiscard]] std::string shortest(double number);
[[nodiscard]] std::string shortest(float number);

}  // namespace ronda
