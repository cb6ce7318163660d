#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>

#include <ronda/data/byte_values.hpp>

namespace ronda {

/// Makes a field's elements of an array's: see type_in_batch.
class Conversion {
 public:
  Conversion(DType stored, ByteValues bytes);

  /// @param from  need not be aligned
  /// @param to    of the batch's type
  /// @return a whole number that int32 cannot hold, where there is one; none: all is well
  std::optional<std::int64_t> operator()(const std::byte* from, std::byte* to, std::size_t count) const {
    return function_(from, to, count);
  }
  /// How a device makes the same of the stored bytes; none where it cannot.
  [[nodiscard]] std::optional<Decode> decode() const noexcept { return decode_; }

 private:
  std::optional<std::int64_t> (*function_)(const std::byte* from, std::byte* to, std::size_t count);
  std::optional<Decode> decode_;
};

}  // namespace ronda
