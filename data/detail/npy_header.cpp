#include <ronda/core/error.hpp>
#include <ronda/data/detail/lines.hpp>
#include <ronda/data/detail/npy_header.hpp>

#include <array>
#include <charconv>
#include <string_view>
#include <vector>

namespace ronda {
namespace {

/// Takes apart the dictionary: `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`.
class Dictionary {
 public:
  Dictionary(std::string_view text, const std::string& source) : rest_(text), whole_(text), source_(source) {}

  NpyHeader read() {
    NpyHeader header;
    bool has_type = false, has_order = false, has_shape = false;
    take("{");
    while (!takes("}")) {
      const std::string_view key = quoted();
      take(":");
      if (key == "descr") {
        header.dtype = type_of(quoted());
        has_type = true;
      } else if (key == "fortran_order") {
        if (!takes("False"))
          throw error("has its values in Fortran's order, expected C's; save numpy.ascontiguousarray of it");
        has_order = true;
      } else if (key == "shape") {
        header.shape = shape();
        has_shape = true;
      } else {
        throw damaged("an unknown key");
      }
      if (!takes(",")) {
        take("}");
        break;
      }
    }
    skip_blanks();
    if (!has_type || !has_order || !has_shape || !rest_.empty()) throw damaged("another dictionary");
    return header;
  }

 private:
  void skip_blanks() {
    while (rest_.starts_with(' ') || rest_.starts_with('\n')) rest_.remove_prefix(1);
  }
  bool takes(std::string_view text) {
    skip_blanks();
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  void take(std::string_view text) {
    if (!takes(text)) throw damaged("no '" + std::string(text) + "' at place " + std::to_string(place()));
  }
  std::string_view quoted() {
    if (takes("["))  // of fields, each with a name
      throw error("has records of several fields, expected numbers of one type; save each field by itself");
    take("'");
    const std::size_t end = rest_.find('\'');
    if (end == std::string_view::npos) throw damaged("a text without its end");
    const std::string_view text = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return text;
  }

  [[nodiscard]] DType type_of(std::string_view text) const {
    constexpr std::array types{DType::float16, DType::float32, DType::float64, DType::uint8,
                               DType::int8,    DType::int32,   DType::int64};
    constexpr std::array<std::string_view, types.size()> names{"<f2", "<f4", "<f8", "|u1", "|i1", "<i4", "<i8"};
    for (std::size_t i = 0; i < types.size(); ++i)
      if (text == names[i]) return types[i];
    throw error("has numbers of type '" + shown(text) +
                "', expected little-endian float16, float32, float64, uint8, int8, int32 or int64; save it by "
                "array.astype of one of them");
  }

  Shape shape() {
    take("(");
    std::vector<std::int64_t> extents;
    while (!takes(")")) {
      skip_blanks();
      std::int64_t extent = 0;
      const auto [end, problem] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), extent);
      if (problem != std::errc() || extent < 0) throw damaged("no extent at place " + std::to_string(place()));
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      extents.push_back(extent);
      if (extents.size() > Shape::capacity)
        throw error("has more than " + std::to_string(Shape::capacity) + " axes; save it reshaped to fewer");
      if (!takes(",")) {
        take(")");
        break;
      }
    }
    return checked(extents);
  }

  /// Without a product that cannot be counted, also beside a 0.
  [[nodiscard]] Shape checked(const std::vector<std::int64_t>& extents) const {
    std::int64_t product = 1;
    for (const std::int64_t extent : extents)
      if (extent > 0 && (__builtin_mul_overflow(product, extent, &product) || product > Shape::most_elements))
        throw damaged("a shape of more values than can be");
    return Shape(extents);
  }

  [[nodiscard]] std::size_t place() const { return whole_.size() - rest_.size(); }
  [[nodiscard]] InputError error(const std::string& what) const { return InputError(source_ + " " + what); }
  [[nodiscard]] InputError damaged(const std::string& found) const {
    return InputError(source_ + ": expected a header as NumPy writes it, with descr, fortran_order and shape, found " +
                      found + " in '" + shown(whole_) + "'; the file is damaged or none of NumPy's");
  }

  std::string_view rest_, whole_;
  const std::string& source_;
};

}  // namespace

NpyHeader read_npy_header(std::span<const std::byte> file, const std::string& source) {
  const auto byte = [&](std::size_t i) { return std::to_integer<std::size_t>(file[i]); };
  const auto damaged = [&](const std::string& what) {
    return InputError(source + ": " + what + "; the file is damaged or none of NumPy's");
  };
  constexpr std::string_view magic = "\x93NUMPY";
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (!text.starts_with(magic) || file.size() < 10)
    throw damaged("expected a .npy file, which begins with 0x93 and NUMPY");
  const std::size_t version = byte(6), begin = version == 1 ? 10 : 12;
  if (version < 1 || version > 3) throw damaged("expected version 1, 2 or 3, found " + std::to_string(version));
  if (file.size() < begin) throw damaged("expected a header, found the file's end");
  std::size_t length = byte(8) | byte(9) << 8;
  if (version > 1) length |= byte(10) << 16 | byte(11) << 24;
  if (length > file.size() - begin)
    throw damaged("expected a header of " + std::to_string(length) + " bytes, found " +
                  std::to_string(file.size() - begin));
  NpyHeader header = Dictionary(text.substr(begin, length), source).read();
  header.bytes = begin + length;
  return header;
}

}  // namespace ronda
