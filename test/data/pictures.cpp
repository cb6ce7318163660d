#include "data/pictures.hpp"

#include <cstdio>

#include <jpeglib.h>
#include <png.h>

#include <cstdlib>

namespace ronda::test {

std::string png_of(const PngPicture& picture) {
  std::string file;
  png_structp encoder = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(encoder);
  const auto take = [](png_structp from, png_bytep bytes, std::size_t count) {
    static_cast<std::string*>(png_get_io_ptr(from))->append(reinterpret_cast<const char*>(bytes), count);
  };
  png_set_write_fn(encoder, &file, take, nullptr);
  png_set_IHDR(encoder, info, picture.width, picture.height, picture.bit_depth, picture.color_type,
               picture.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  std::vector<png_color> colors;
  for (std::size_t i = 0; i + 2 < picture.palette.size(); i += 3)
    colors.push_back({picture.palette[i], picture.palette[i + 1], picture.palette[i + 2]});
  if (!colors.empty()) png_set_PLTE(encoder, info, colors.data(), static_cast<int>(colors.size()));
  png_write_info(encoder, info);
  std::vector<png_bytep> rows;
  const std::size_t row_bytes = picture.bytes.size() / picture.height;
  for (unsigned y = 0; y < picture.height; ++y)
    rows.push_back(const_cast<png_bytep>(picture.bytes.data()) + y * row_bytes);
  png_write_image(encoder, rows.data());
  png_write_end(encoder, nullptr);
  png_destroy_write_struct(&encoder, &info);
  return file;
}

std::string jpeg_of(unsigned height, unsigned width, int channels, std::vector<std::uint8_t> bytes,
                    const JpegForm& form) {
  jpeg_compress_struct encoder{};
  jpeg_error_mgr errors{};
  encoder.err = jpeg_std_error(&errors);
  jpeg_create_compress(&encoder);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&encoder, &memory, &size);
  encoder.image_height = height;
  encoder.image_width = width;
  encoder.input_components = channels;
  encoder.in_color_space = channels == 1 ? JCS_GRAYSCALE : channels == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&encoder);
  if (channels == 4) encoder.write_Adobe_marker = TRUE;
  if (channels == 3) {
    encoder.comp_info[0].h_samp_factor = form.across;
    encoder.comp_info[0].v_samp_factor = form.down;
  }
  jpeg_set_quality(&encoder, form.quality, TRUE);
  if (form.progressive) jpeg_simple_progression(&encoder);
  jpeg_start_compress(&encoder, TRUE);
  for (unsigned y = 0; y < height; ++y) {
    JSAMPROW row = bytes.data() + static_cast<std::size_t>(y) * width * static_cast<unsigned>(channels);
    jpeg_write_scanlines(&encoder, &row, 1);
  }
  jpeg_finish_compress(&encoder);
  std::string file(reinterpret_cast<const char*>(memory), size);
  jpeg_destroy_compress(&encoder);
  std::free(memory);
  return file;
}

}  // namespace ronda::test
