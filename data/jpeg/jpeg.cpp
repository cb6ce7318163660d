#include <ronda/data/detail/picture.hpp>
#include <ronda/data/optional_formats.hpp>

#include <cstdio>  // jpeglib.h needs it before itself

#include <jpeglib.h>

#include <jerror.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <string>

#if defined(LIBJPEG_TURBO_VERSION_NUMBER) && LIBJPEG_TURBO_VERSION_NUMBER >= 2001000
#define RONDA_DECODES_PARTS 1  // jpeg_crop_scanline, jpeg_skip_scanlines
#else
#define RONDA_DECODES_PARTS 0
#endif

namespace ronda {
namespace {

/// libjpeg's errors leave by longjmp, past no object that has a destructor: the functions between are C's and ours
/// below, which have none.
struct Errors {
  jpeg_error_mgr base;  // first, so that it has the address of the whole
  std::jmp_buf place;
  std::array<char, JMSG_LENGTH_MAX> text;
};

[[noreturn]] void leave(j_common_ptr decoder) {
  auto* errors = reinterpret_cast<Errors*>(decoder->err);
  decoder->err->format_message(decoder, errors->text.data());
  std::longjmp(errors->place, 1);
}

/// Of the warnings those count as damage after which libjpeg makes pixels up.
void hear(j_common_ptr decoder, int level) {
  if (level >= 0) return;
  switch (decoder->err->msg_code) {
    case JWRN_JPEG_EOF:
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_ARITH_BAD_CODE: leave(decoder);
    default: ++decoder->err->num_warnings;
  }
}

void print_nothing(j_common_ptr) {}

/// Converts pixels of cyan, magenta, yellow and black to red, green and blue. 255 is no ink, as Adobe's programs write
/// it, also in files without Adobe's marker, which some tools remove: browsers and Pillow read them alike.
void write_rgb(const std::uint8_t* inks, JDIMENSION width, std::uint8_t* rgb) {
  for (; width > 0; --width, inks += 4)
    for (int c = 0; c < 3; ++c) *rgb++ = static_cast<std::uint8_t>(inks[c] * inks[3] / 255);
}

class Decoder {
 public:
  Decoder() {
    decoder_.err = jpeg_std_error(&errors_.base);
    errors_.base.error_exit = leave;
    errors_.base.emit_message = hear;
    errors_.base.output_message = print_nothing;
  }
  ~Decoder() {
    if (created_) jpeg_destroy_decompress(&decoder_);
  }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  void read_header(std::span<const std::byte> file) {
    if (setjmp(errors_.place) != 0) throw damaged();
    jpeg_create_decompress(&decoder_);
    created_ = true;
    jpeg_mem_src(&decoder_, reinterpret_cast<const unsigned char*>(file.data()), file.size());
    jpeg_read_header(&decoder_, TRUE);
    is_cmyk_ = decoder_.num_components == 4;
    decoder_.out_color_space = is_cmyk_ ? JCS_CMYK : JCS_RGB;
    jpeg_calc_output_dimensions(&decoder_);
  }
  [[nodiscard]] JDIMENSION height() const { return decoder_.output_height; }
  [[nodiscard]] JDIMENSION width() const { return decoder_.output_width; }

  /// Goes to the first row of the part. Returns it with the columns that rows then have, its own and some beside them.
  CropBox start(const CropBox& part) {
    if (setjmp(errors_.place) != 0) throw damaged();
    jpeg_start_decompress(&decoder_);
#if RONDA_DECODES_PARTS
    // Colours that have fewer columns are interpolated, from the one beside the part too.
    const std::int64_t beside = decoder_.max_h_samp_factor;
    const std::int64_t left = std::max<std::int64_t>(part.left - beside, 0),
                       right = std::min<std::int64_t>(part.left + part.width + beside, width());
    auto first = static_cast<JDIMENSION>(left), columns = static_cast<JDIMENSION>(right - left);
    if (columns < width()) jpeg_crop_scanline(&decoder_, &first, &columns);
    if (part.top > 0) jpeg_skip_scanlines(&decoder_, static_cast<JDIMENSION>(part.top));
    return {part.top, first, part.height, columns};
#else
    return part;
#endif
  }

  /// @param rows  so many, of width() pixels each
  /// @param wide  a row of four bytes a pixel, for CMYK
  void read_rows(std::int64_t count, std::uint8_t* rows, std::uint8_t* wide) {
    if (setjmp(errors_.place) != 0) throw damaged();
    const std::size_t row_bytes = std::size_t{3} * width();
    for (std::int64_t y = 0; y < count; ++y) {
      std::uint8_t* const row = rows + static_cast<std::size_t>(y) * row_bytes;
      JSAMPROW target = is_cmyk_ ? wide : row;
      jpeg_read_scanlines(&decoder_, &target, 1);
      if (is_cmyk_) write_rgb(wide, width(), row);
    }
    if (decoder_.output_scanline == height()) jpeg_finish_decompress(&decoder_);
  }

 private:
  [[nodiscard]] PictureError damaged() const {
    return PictureError("expected a whole JPEG, found: " + std::string(errors_.text.data()));
  }

  Errors errors_{};
  jpeg_decompress_struct decoder_{};
  bool created_ = false, is_cmyk_ = false;
};

/// @param wanted  null: all
void decode(std::span<const std::byte> file, Picture& picture, const WantedPart& wanted) {
  Decoder decoder;
  decoder.read_header(file);
  picture.set_size(decoder.height(), decoder.width(), file.size());
  const CropBox all{0, 0, picture.height, picture.width};
  picture.hold(decoder.start(wanted ? wanted(picture.height, picture.width) : all));
  std::vector<std::uint8_t> wide(std::size_t{4} * decoder.width());
  decoder.read_rows(picture.part.height, picture.pixels.data(), wide.data());
}

/// Where its last bytes are not a JPEG's end, it may be cut off, which decoding all of it shows.
bool ends(std::span<const std::byte> file) {
  return file[file.size() - 2] == std::byte{0xff} && file.back() == std::byte{JPEG_EOI};
}

}  // namespace

OptionalFormat jpeg_format() {
#ifdef LIBJPEG_TURBO_VERSION
  const int number = LIBJPEG_TURBO_VERSION_NUMBER;
  return {"JPEG",
          "libjpeg-turbo " + std::to_string(number / 1000000) + "." + std::to_string(number / 1000 % 1000) + "." +
              std::to_string(number % 1000),
          "libjpeg-dev"};
#else
  return {"JPEG", "libjpeg " + std::to_string(JPEG_LIB_VERSION / 10), "libjpeg-dev"};
#endif
}

void decode_jpeg(std::span<const std::byte> file, Picture& picture, const WantedPart& wanted) {
  if (RONDA_DECODES_PARTS && wanted && ends(file)) try {
      return decode(file, picture, wanted);
    } catch (const PictureError&) {  // a lossless one has no parts; of a damaged one all says so again
    }
  decode(file, picture, nullptr);
}

}  // namespace ronda
