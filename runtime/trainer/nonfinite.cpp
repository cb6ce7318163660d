#include <ronda/core/names.hpp>
#include <ronda/runtime/trainer/nonfinite.hpp>

namespace ronda {
namespace {

constexpr EnumNames<OnNonfinite, 3> nonfinite_names{{
    {OnNonfinite::stop, "stop"},
    {OnNonfinite::skip, "skip"},
    {OnNonfinite::rollback, "rollback"},
}};

}  // namespace

OnNonfinite parse_on_nonfinite(std::string_view name) {
  return parse_name(nonfinite_names, name, "a choice for numbers that are not finite");
}

std::string_view name_of(OnNonfinite choice) noexcept { return find_name(nonfinite_names, choice); }

}  // namespace ronda
