#include <ronda/core/names.hpp>
#include <ronda/layers/precision.hpp>

namespace ronda {
namespace {

constexpr EnumNames<Precision, 4> names{{{Precision::float32, "float32"},
                                         {Precision::tf32, "tf32"},
                                         {Precision::mixed_bfloat16, "mixed_bfloat16"},
                                         {Precision::mixed_float16, "mixed_float16"}}};

constexpr EnumNames<DType, 2> reduce_dtypes{{{DType::bfloat16, "bfloat16"}, {DType::float32, "float32"}}};

}  // namespace

Precision parse_precision(std::string_view name) {
  return parse_name(names, name, "a type to compute in (.precision)");
}
DType parse_reduce_dtype(std::string_view name) {
  return parse_name(reduce_dtypes, name, "a type to sum gradients in (.reduce_dtype)");
}
std::string_view name_of(Precision precision) noexcept { return find_name(names, precision); }

}  // namespace ronda
