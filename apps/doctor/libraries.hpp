#pragma once
#include <string>
#include <vector>

namespace ronda::apps {

/// A library of the machine's that may not be there: found as a program would find it, and asked for its version.
struct OptionalLibrary {
  std::string version;  ///< empty: not found
  std::string problem;  ///< why not, as the loader has it
};
[[nodiscard]] OptionalLibrary find_driver();  ///< libcuda: which CUDA the driver is for
[[nodiscard]] OptionalLibrary find_nccl();
[[nodiscard]] OptionalLibrary find_cudnn();
[[nodiscard]] OptionalLibrary find_cublaslt();

}  // namespace ronda::apps
