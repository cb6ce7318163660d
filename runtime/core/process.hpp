#pragma once
#include <string>

namespace ronda {

/// Seconds since the operating system started this process, to a hundredth; 0 where it does not say.
[[nodiscard]] double seconds_since_process_start();

/// The processor's name as it gives it: `AMD EPYC 9R14 96-Core Processor`; "unknown" where it does not.
[[nodiscard]] std::string processor_name();

}  // namespace ronda
