#include <ronda/core/dtype.hpp>
#include <ronda/core/error.hpp>
#include <ronda/data/detail/conversion.hpp>

#include <cstring>
#include <limits>
#include <string>

namespace ronda {
namespace {

using Result = std::optional<std::int64_t>;

template <class T>
Result copy(const std::byte* from, std::byte* to, std::size_t count) {
  std::memcpy(to, from, count * sizeof(T));
  return std::nullopt;
}

/// Writes `of(element)` for each element.
template <class From, class To, class Of>
void write_each(const std::byte* from, std::byte* to, std::size_t count, Of&& of) {
  for (std::size_t i = 0; i < count; ++i) {
    From element;
    std::memcpy(&element, from + i * sizeof(From), sizeof(From));
    const To value = of(element);
    std::memcpy(to + i * sizeof(To), &value, sizeof(To));
  }
}

template <class From>
Result to_floats(const std::byte* from, std::byte* to, std::size_t count) {
  write_each<From, float>(from, to, count, [](From element) {
    if constexpr (std::is_same_v<From, std::uint8_t>)
      return unit_of(element);
    else if constexpr (std::is_same_v<From, double>)
      return static_cast<float>(element);
    else
      return to_float(element);
  });
  return std::nullopt;
}

template <class From>
Result to_whole_numbers(const std::byte* from, std::byte* to, std::size_t count) {
  using Limits = std::numeric_limits<std::int32_t>;
  Result bad;
  write_each<From, std::int32_t>(from, to, count, [&](From element) {
    if (element < Limits::min() || element > Limits::max()) bad = element;
    return static_cast<std::int32_t>(element);
  });
  return bad;
}

[[noreturn]] void refuse(DType stored) {
  throw LogicError("arrays of " + std::string(name_of(stored)) + " are no data that is read");
}

}  // namespace

DType type_in_batch(DType stored, ByteValues bytes) {
  switch (stored) {
    case DType::float32:
    case DType::float64:
    case DType::float16: return DType::float32;
    case DType::int8:
    case DType::int32:
    case DType::int64: return DType::int32;
    case DType::uint8:
      return bytes == ByteValues::unit ? DType::float32 : bytes == ByteValues::label ? DType::int32 : DType::uint8;
    case DType::bfloat16: break;
  }
  refuse(stored);
}

Conversion::Conversion(DType stored, ByteValues bytes) {
  switch (stored) {
    case DType::float32: function_ = copy<float>, decode_ = Decode::none; return;
    case DType::float64: function_ = to_floats<double>; return;
    case DType::float16: function_ = to_floats<Float16>; return;
    case DType::int8: function_ = to_whole_numbers<std::int8_t>; return;
    case DType::int32: function_ = copy<std::int32_t>, decode_ = Decode::none; return;
    case DType::int64: function_ = to_whole_numbers<std::int64_t>; return;
    case DType::uint8:
      switch (bytes) {
        case ByteValues::unit: function_ = to_floats<std::uint8_t>, decode_ = Decode::unit; return;
        case ByteValues::label: function_ = to_whole_numbers<std::uint8_t>, decode_ = Decode::label; return;
        case ByteValues::same: function_ = copy<std::uint8_t>, decode_ = Decode::none; return;
      }
      break;
    case DType::bfloat16: break;
  }
  refuse(stored);
}

}  // namespace ronda
