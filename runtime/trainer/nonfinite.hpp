#pragma once
#include <cstdint>
#include <string_view>

namespace ronda {

/// Action if a loss, gradients or parameters are not finite. For a loss or gradients no rank applies that step's
/// update; an update that overflows cannot be undone, and stops the training.
enum class OnNonfinite : std::uint8_t {
  stop,      ///< the training fails, and reports the origin
  skip,      ///< the training continues with the next batch
  rollback,  ///< the same, with parameters and optimizer from the last checkpoint
};
/// Parses stop, skip or rollback. Throws an InputError that lists them.
[[nodiscard]] OnNonfinite parse_on_nonfinite(std::string_view name);
[[nodiscard]] std::string_view name_of(OnNonfinite choice) noexcept;

}  // namespace ronda
