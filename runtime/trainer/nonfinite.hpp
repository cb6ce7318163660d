#pragma once
#include <cstdint>
#include <string_view>

namespace ronda {

/// What becomes of a training whose loss, gradients or parameters are not finite. Where loss or gradients are not there
/// is no update in such a step, on any rank; an update that overflows cannot be skipped any more, and stops it.
enum class OnNonfinite : std::uint8_t {
  stop,      ///< it fails, and says where that came from
  skip,      ///< it goes on with the next batch
  rollback,  ///< likewise, but with parameters and optimizer as in the last checkpoint
};
/// stop, skip, rollback. Throws InputError that lists them.
[[nodiscard]] OnNonfinite parse_on_nonfinite(std::string_view name);
[[nodiscard]] std::string_view name_of(OnNonfinite choice) noexcept;

}  // namespace ronda
