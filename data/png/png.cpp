#include <ronda/data/detail/picture.hpp>
#include <ronda/data/optional_formats.hpp>

#include <png.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstring>
#include <string>

namespace ronda {
namespace {

/// What is left of a file, and what libpng said last. libpng's errors leave by longjmp, past no object that has a
/// destructor: the functions between are C's and ours below, which have none.
struct Source {
  std::span<const std::byte> rest;
  std::array<char, 200> text{};
  std::jmp_buf place;
};

[[noreturn]] void leave(png_structp decoder, png_const_charp text) {
  auto* source = static_cast<Source*>(png_get_error_ptr(decoder));
  std::strncpy(source->text.data(), text, source->text.size() - 1);
  std::longjmp(source->place, 1);
}

void hear(png_structp, png_const_charp) {}

void give(png_structp decoder, png_bytep bytes, std::size_t count) {
  auto* source = static_cast<Source*>(png_get_io_ptr(decoder));
  if (count > source->rest.size()) png_error(decoder, "the file's end");
  std::memcpy(bytes, source->rest.data(), count);
  source->rest = source->rest.subspan(count);
}

class Decoder {
 public:
  explicit Decoder(std::span<const std::byte> file) : source_{.rest = file, .place = {}} {
    decoder_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &source_, leave, hear);
    if (decoder_ == nullptr) throw ResourceError("libpng cannot begin to decode");
    info_ = png_create_info_struct(decoder_);
    if (info_ == nullptr) {
      png_destroy_read_struct(&decoder_, nullptr, nullptr);
      throw ResourceError("libpng cannot begin to decode");
    }
    png_set_read_fn(decoder_, &source_, give);
  }
  ~Decoder() { png_destroy_read_struct(&decoder_, &info_, nullptr); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  /// Asks for three bytes a pixel, whatever the file has.
  void read_header() {
    if (setjmp(source_.place) != 0) throw damaged();
    png_read_info(decoder_, info_);
    png_set_expand(decoder_);
    png_set_strip_16(decoder_);
    png_set_strip_alpha(decoder_);
    png_set_gray_to_rgb(decoder_);
    passes_ = png_set_interlace_handling(decoder_);
    png_read_update_info(decoder_, info_);
  }
  [[nodiscard]] png_uint_32 height() const { return png_get_image_height(decoder_, info_); }
  [[nodiscard]] png_uint_32 width() const { return png_get_image_width(decoder_, info_); }

  /// @param rows  height() of them, of width() pixels each
  void read_rows(std::uint8_t* rows) {
    if (setjmp(source_.place) != 0) throw damaged();
    const std::size_t row_bytes = png_get_rowbytes(decoder_, info_);
    for (int pass = 0; pass < passes_; ++pass)
      for (png_uint_32 y = 0; y < height(); ++y) png_read_row(decoder_, rows + y * row_bytes, nullptr);
    png_read_end(decoder_, nullptr);
  }

 private:
  [[nodiscard]] PictureError damaged() const {
    return PictureError("expected a whole PNG, found: " + std::string(source_.text.data()));
  }

  Source source_;
  png_structp decoder_ = nullptr;
  png_infop info_ = nullptr;
  int passes_ = 1;
};

}  // namespace

OptionalFormat png_format() { return {"PNG", std::string("libpng ") + PNG_LIBPNG_VER_STRING, "libpng-dev"}; }

void decode_png(std::span<const std::byte> file, Picture& picture) {
  Decoder decoder(file);
  decoder.read_header();
  picture.resize(decoder.height(), decoder.width(), file.size());
  decoder.read_rows(picture.pixels.data());
}

}  // namespace ronda
