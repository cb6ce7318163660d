// Folders of pictures, which are made here.
#include <png.h>

#include <cmath>
#include <utility>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/data/detail/picture.hpp>
#include <ronda/data/detail/resample.hpp>
#include <ronda/data/image_folder.hpp>
#include <ronda/data/loader.hpp>
#include <ronda/data/picture_files.hpp>

#include "data/pictures.hpp"
#include "support/catch.hpp"
#include "support/message.hpp"
#include "support/temporary_folder.hpp"

using namespace ronda;
using namespace ronda::test;

namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes noise(std::size_t count, std::uint64_t stream = 0) {
  const RngKey key(5, Purpose::test, stream);
  Bytes bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::uint8_t>(key.below(256, i));
  return bytes;
}

std::span<const std::byte> bytes_of(const std::string& file) { return std::as_bytes(std::span(file)); }

Bytes decoded_png(const PngPicture& source) {
  Picture picture;
  decode_png(bytes_of(png_of(source)), picture);
  CHECK(picture.height == source.height);
  CHECK(picture.width == source.width);
  return picture.pixels;
}

/// Each byte three times.
Bytes tripled(const Bytes& greys) {
  Bytes result;
  for (const std::uint8_t grey : greys) result.insert(result.end(), 3, grey);
  return result;
}

void write_picture(const std::filesystem::path& path, const std::string& file) {
  std::filesystem::create_directories(path.parent_path());
  write_file(path, file);
}

std::string color_png(unsigned height, unsigned width, const Bytes& rgb) {
  return png_of({height, width, PNG_COLOR_TYPE_RGB, 8, rgb});
}

/// Five pictures of two classes.
void write_pictures(const std::filesystem::path& folder) {
  write_picture(folder / "dog" / "b.png", color_png(9, 12, noise(9 * 12 * 3, 1)));
  write_picture(folder / "dog" / "a.PNG", color_png(12, 9, noise(9 * 12 * 3, 2)));
  write_picture(folder / "cat" / "z" / "deep.JPEG", jpeg_of(20, 16, 3, noise(20 * 16 * 3, 3)));
  write_picture(folder / "cat" / "y.jpg", jpeg_of(16, 20, 1, noise(20 * 16, 4)));
  write_picture(folder / "cat" / "not a picture.txt", "text");
  write_picture(folder / "cat" / "x.jpg", color_png(8, 8, noise(8 * 8 * 3, 5)));  // its first bytes count
}

std::vector<float> pixels_of(const Dataset& data, std::uint64_t sample, std::uint64_t epoch = 0) {
  Batch batch(data.fields(), 1);
  const std::vector<std::uint64_t> samples{sample};
  data.read({samples, epoch, 3}, batch);
  const auto values = batch.input().as<float>();
  return {values.begin(), values.end()};
}

/// The definition: a triangle as wide as the reduction around each middle, its weights brought to a sum of 1.
std::vector<double> resampled(const Bytes& source, std::int64_t width, const ResampleAxis& rows,
                              const ResampleAxis& columns, std::int64_t size) {
  const auto weights = [](const ResampleAxis& axis, std::int64_t i) {
    const double middle = axis.begin + (static_cast<double>(i) + 0.5) * axis.scale, reach = std::max(1.0, axis.scale);
    std::vector<double> all(static_cast<std::size_t>(axis.high), 0.0);
    double sum = 0;
    for (std::int64_t k = axis.low; k < axis.high; ++k) {
      const double weight = std::max(0.0, 1 - std::abs(static_cast<double>(k) + 0.5 - middle) / reach);
      all[static_cast<std::size_t>(k)] = weight;
      sum += weight;
    }
    for (double& each : all) each /= sum;
    return all;
  };
  std::vector<double> result;
  for (std::int64_t y = 0; y < size; ++y)
    for (std::int64_t x = 0; x < size; ++x)
      for (std::size_t c = 0; c < 3; ++c) {
        const auto wy = weights(rows, y), wx = weights(columns, x);
        double sum = 0;
        for (std::size_t i = 0; i < wy.size(); ++i)
          for (std::size_t k = 0; k < wx.size(); ++k)
            sum += wy[i] * wx[k] * source[(i * static_cast<std::size_t>(width) + k) * 3 + c];
        result.push_back(sum / 255);
      }
  return result;
}

}  // namespace

TEST_CASE("PNGs of all kinds become red, green and blue to the byte") {
  for (const bool interlaced : {false, true}) {
    const Bytes rgb = noise(7 * 5 * 3), grey = noise(35);
    CHECK(decoded_png({7, 5, PNG_COLOR_TYPE_RGB, 8, rgb, interlaced}) == rgb);
    CHECK(decoded_png({7, 5, PNG_COLOR_TYPE_GRAY, 8, grey, interlaced}) == tripled(grey));
    Bytes with_alpha, with_alpha_grey, deep;
    for (std::size_t i = 0; i < rgb.size(); ++i) {
      with_alpha.push_back(rgb[i]);
      if (i % 3 == 2) with_alpha.push_back(static_cast<std::uint8_t>(i));
      deep.insert(deep.end(), {rgb[i], 77});
    }
    for (const std::uint8_t each : grey) with_alpha_grey.insert(with_alpha_grey.end(), {each, 9});
    CHECK(decoded_png({7, 5, PNG_COLOR_TYPE_RGB_ALPHA, 8, with_alpha, interlaced}) == rgb);
    CHECK(decoded_png({7, 5, PNG_COLOR_TYPE_GRAY_ALPHA, 8, with_alpha_grey, interlaced}) == tripled(grey));
    CHECK(decoded_png({7, 5, PNG_COLOR_TYPE_RGB, 16, deep, interlaced}) == rgb);
    const Bytes colors{1, 2, 3, 40, 50, 60};
    CHECK(decoded_png({2, 2, PNG_COLOR_TYPE_PALETTE, 8, {0, 1, 1, 0}, interlaced, colors}) ==
          Bytes{1, 2, 3, 40, 50, 60, 40, 50, 60, 1, 2, 3});
    CHECK(decoded_png({1, 8, PNG_COLOR_TYPE_GRAY, 1, {0b10110000}, interlaced}) ==
          tripled({255, 0, 255, 255, 0, 0, 0, 0}));
  }
}

TEST_CASE("binary PGM and PPM become red, green and blue; what is damaged is said") {
  const auto decoded = [](const std::string& file) {
    Picture picture;
    decode_netpbm(bytes_of(file), picture);
    CHECK(picture.height == 2);
    CHECK(picture.width == 1);
    return picture.pixels;
  };
  CHECK(decoded(std::string("P5\n# x 9\n1 2\n255\n\0\xff", 19)) == Bytes{0, 0, 0, 255, 255, 255});
  CHECK(decoded("P5 1 2 10\n\x05\x0c") == Bytes{128, 128, 128, 255, 255, 255});  // 12 is more than its largest
  CHECK(decoded("P6 1 2 255 abcdef and more") == Bytes{'a', 'b', 'c', 'd', 'e', 'f'});
  const auto refused = [](const std::string& file, const std::string& text) {
    Picture picture;
    require_mentions(message_of<PictureError>([&] { decode_netpbm(bytes_of(file), picture); }), {text});
  };
  refused("P6 1 2 255 abcde", "expected 6 bytes of pixels, found 5");
  refused("P5 1 2 255", "expected 2 bytes of pixels, found 0");
  refused("P5 1 2 65535 abcd", "from 1 to 255, found 65535");
  refused("P5 1 2 0 ab", "found 0");
  refused("P5 1 x", "expected a number at byte 5");
  refused("P5 # no end", "expected a number at byte 11");
  refused("P5 0 2 255 ", "2 rows of 0");
  refused("P6 99999999999 99999999999 255 ", "found");
}

TEST_CASE("picture files are samples in the order given, as a folder has them; greys are luminance") {
  const TemporaryFolder folder;
  write_pictures(folder.path());
  const ImageFolder expected(folder.path(), {.size = 6, .resize = 8});
  const std::vector<std::filesystem::path> files{expected.path(4), expected.path(0), expected.path(4)};
  const PictureFiles colours(files, {.size = 6, .resize = 8}), greys(files, {.size = 6, .resize = 8, .channels = 1});
  CHECK(greys.fields()[0].shape == Shape{6, 6, 1});
  REQUIRE(colours.size() == 3);
  for (const std::size_t i : {0U, 1U, 2U}) {
    const auto rgb = pixels_of(expected, i == 1 ? 0 : 4), grey = pixels_of(greys, i);
    CHECK(pixels_of(colours, i) == rgb);
    for (std::size_t k = 0; k < grey.size(); ++k)
      CHECK(grey[k] == Approx(0.299 * rgb[3 * k] + 0.587 * rgb[3 * k + 1] + 0.114 * rgb[3 * k + 2]));
  }
  write_file(folder / "text.png", "text");
  for (const auto& [file, text] : {std::pair{"text.png", "expected a JPEG, a PNG"}, {"none", "cannot be read"}})
    require_mentions(message_of<InputError>([&] { pixels_of(PictureFiles({folder / file}), 0); }), {file, text});
  CHECK_THROWS_AS(PictureFiles({}, {.size = 9, .resize = 8}), InputError);
  CHECK_THROWS_AS(PictureFiles({}, {.channels = 2}), InputError);
}

TEST_CASE("a PNG that is written is read back to the byte") {
  for (const auto& [height, width] : {std::pair{1U, 1U}, {7U, 5U}}) {
    const Bytes rgb = noise(std::size_t{height} * width * 3);
    Picture picture;
    decode_png(encode_png(height, width, rgb), picture);
    CHECK((picture.height == height && picture.width == width));
    CHECK(picture.pixels == rgb);
  }
  CHECK_THROWS_AS(encode_png(2, 2, Bytes(11)), LogicError);
}

TEST_CASE("JPEGs of colours, greys and inks become red, green and blue, as near as their quality goes") {
  // A smooth picture: at quality 100 it comes back within a few of 255.
  Bytes rgb, grey, inks;
  for (int y = 0; y < 24; ++y)
    for (int x = 0; x < 16; ++x) {
      const auto a = static_cast<std::uint8_t>(5 * y + 30), b = static_cast<std::uint8_t>(9 * x + 40);
      rgb.insert(rgb.end(), {a, b, static_cast<std::uint8_t>((a + b) / 2)});
      grey.push_back(a);
      inks.insert(inks.end(), {a, b, a, 200});
    }
  const auto distance = [](const std::string& file, const Bytes& expected) {
    Picture picture;
    decode_jpeg(bytes_of(file), picture);
    CHECK(picture.height == 24);
    CHECK(picture.width == 16);
    REQUIRE(picture.pixels.size() == expected.size());
    int most = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) most = std::max(most, std::abs(picture.pixels[i] - expected[i]));
    return most;
  };
  CHECK(distance(jpeg_of(24, 16, 3, rgb), rgb) <= 3);
  CHECK(distance(jpeg_of(24, 16, 1, grey), tripled(grey)) <= 1);
  Bytes printed;
  for (std::size_t i = 0; i < inks.size(); i += 4)
    for (std::size_t c = 0; c < 3; ++c) printed.push_back(static_cast<std::uint8_t>(inks[i + c] * 200 / 255));
  std::string print = jpeg_of(24, 16, 4, inks);
  CHECK(distance(print, printed) <= 2);
  const std::size_t marker = print.find("\xff\xee");  // Adobe's marker, which some tools remove
  REQUIRE(marker != std::string::npos);
  print.erase(marker, 2 + static_cast<std::size_t>(static_cast<unsigned char>(print[marker + 3])));
  CHECK(distance(print, printed) <= 2);
}

TEST_CASE("a part of a JPEG has the pixels that all of it has there") {
  std::vector<std::pair<int, JpegForm>> forms{{1, {}}, {4, {}}};
  for (const bool progressive : {false, true})
    for (const auto& [across, down] : {std::pair{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}})
      forms.push_back({3, {.quality = 80, .across = across, .down = down, .progressive = progressive}});
  const RngKey key(5, Purpose::test, 2);
  std::uint64_t draw = 0;
  for (const auto& [channels, form] : forms)
    for (const auto& [height, width] : {std::pair{100U, 150U}, {97U, 61U}, {8U, 300U}, {1U, 1U}}) {
      CAPTURE(channels, form.across, form.down, form.progressive, height, width);
      const std::string file =
          jpeg_of(height, width, channels, noise(std::size_t{height} * width * static_cast<unsigned>(channels)), form);
      Picture whole, part;
      decode_jpeg(bytes_of(file), whole);
      for (int box = 0; box < 20; ++box) {
        const auto below = [&](std::int64_t count) {
          return static_cast<std::int64_t>(key.below(static_cast<std::uint64_t>(count), draw++));
        };
        CropBox wanted{below(height), below(width), 0, 0};
        wanted.height = 1 + below(height - wanted.top);
        wanted.width = 1 + below(width - wanted.left);
        decode_jpeg(bytes_of(file), part, [&](std::int64_t h, std::int64_t w) {
          CHECK((h == height && w == width));
          return wanted;
        });
        REQUIRE((part.height == height && part.width == width));
        REQUIRE((part.part.top <= wanted.top && part.part.left <= wanted.left));
        REQUIRE(part.part.top + part.part.height >= wanted.top + wanted.height);
        REQUIRE(part.part.left + part.part.width >= wanted.left + wanted.width);
        for (std::int64_t y = wanted.top; y < wanted.top + wanted.height; ++y)
          REQUIRE(std::equal(whole.row(y) + 3 * wanted.left, whole.row(y) + 3 * (wanted.left + wanted.width),
                             part.row(y) + 3 * (wanted.left - part.part.left)));
      }
    }
}

TEST_CASE(
    "a JPEG that is cut off is damaged also where the part that is wanted is there; one with more behind its end is "
    "not") {
  const std::string file = jpeg_of(64, 64, 3, noise(64 * 64 * 3));
  const WantedPart top = [](std::int64_t, std::int64_t width) { return CropBox{0, 0, 4, width}; };
  Picture picture, expected;
  decode_jpeg(bytes_of(file), expected);
  CHECK_THROWS_AS(decode_jpeg(bytes_of(file.substr(0, file.size() - 300)), picture, top), PictureError);
  decode_jpeg(bytes_of(file + "more"), picture, top);
  CHECK(std::equal(picture.row(0), picture.row(4), expected.row(0)));
}

TEST_CASE("resampling is what a plain loop makes of the definition: larger, smaller, parts, and one pixel") {
  Resampler resample;
  for (const auto& [height, width] : {std::pair<std::int64_t, std::int64_t>{13, 9}, {40, 31}, {1, 1}, {2, 50}}) {
    Picture picture;
    picture.resize(static_cast<std::uint64_t>(height), static_cast<std::uint64_t>(width), 10000);
    picture.pixels = noise(picture.pixels.size());
    for (const std::int64_t size : {1, 5, 16, 20}) {
      const auto whole = [&](std::int64_t extent) {
        return ResampleAxis{0, static_cast<double>(extent) / static_cast<double>(size), 0, extent};
      };
      const std::int64_t top = height / 3, left = width / 2;
      const auto part = [&](std::int64_t begin, std::int64_t extent) {
        return ResampleAxis{static_cast<double>(begin), static_cast<double>(extent - begin) / static_cast<double>(size),
                            begin, extent};
      };
      for (const auto& [rows, columns] :
           {std::pair{whole(height), whole(width)}, {part(top, height), part(left, width)}}) {
        std::vector<float> result(static_cast<std::size_t>(size * size * 3));
        resample(picture, rows, columns, size, result.data());
        const auto expected = resampled(picture.pixels, width, rows, columns, size);
        for (std::size_t i = 0; i < result.size(); ++i)
          REQUIRE(std::abs(result[i] - expected[i]) < 1e-5);  // float32, a sum of at most 50 x 40 weights
      }
    }
  }
}

TEST_CASE("a folder of pictures has PyTorch's order of classes and files; the first bytes say what a file is") {
  const TemporaryFolder folder;
  write_pictures(folder.path());
  const ImageFolder data(folder.path(), {.size = 8, .resize = 8});
  CHECK(data.origin(0) == data.path(0).string());
  REQUIRE(data.size() == 5);
  CHECK(data.classes() == std::vector<std::string>{"cat", "dog"});
  const std::vector<std::string> files{"cat/x.jpg", "cat/y.jpg", "cat/z/deep.JPEG", "dog/a.PNG", "dog/b.png"};
  for (std::size_t i = 0; i < files.size(); ++i) CHECK(data.path(i) == folder.path() / files[i]);
  Batch batch(data.fields(), 5);
  data.read({std::vector<std::uint64_t>{4, 3, 2, 1, 0}}, batch);
  const auto labels = batch.target().as<std::int32_t>();
  CHECK(std::vector<std::int32_t>(labels.begin(), labels.end()) == std::vector<std::int32_t>{1, 1, 0, 0, 0});
  const Bytes square = noise(8 * 8 * 3, 5);  // of the size asked for: no byte is changed
  const auto values = pixels_of(data, 0);
  for (std::size_t i = 0; i < square.size(); ++i) REQUIRE(values[i] == static_cast<float>(square[i]) / 255.0F);
}

TEST_CASE("links are followed, each folder once for a class; pictures of other formats are counted") {
  const TemporaryFolder folder;
  write_pictures(folder.path());
  const auto link = [&](const std::filesystem::path& to, const std::filesystem::path& from) {
    std::filesystem::create_directory_symlink(to, folder.path() / from);
  };
  const TemporaryFolder elsewhere;
  write_picture(elsewhere / "e.png", color_png(1, 1, {1, 2, 3}));
  link(elsewhere.path(), "cat/linked");
  link(elsewhere.path(), "cat/again");
  link("..", "cat/z/loop");
  link(folder.path(), "dog/all");
  link("../cat", "dog/cats");
  for (const char* name : {"cat/1.webp", "cat/2.WEBP", "dog/3.bmp"}) write_picture(folder.path() / name, "RIFF");
  const ImageFolder data(folder.path(), {.size = 8, .resize = 8});
  REQUIRE(data.size() == 6);
  CHECK(data.path(2) == folder.path() / "cat/again/e.png");  // by the first name of the folder, on every host
  require_mentions(data.passed_over(), {"1 .bmp, 2 .webp", folder.path().string()});
}

TEST_CASE("the middle of a picture is cropped from its resized form; the numbers are PyTorch's") {
  const TemporaryFolder folder;
  const Bytes wide = noise(10 * 25 * 3);
  write_picture(folder / "a/1.png", color_png(10, 25, wide));
  const ImageFolder data(folder.path(), {.size = 7, .resize = 8});
  // 10 x 25 is resized to 8 x 20; 7 x 7 of that begin at round(0.5) = 0, ties to even, and at round(6.5) = 6.
  const ResampleAxis rows{0, 10 / 8.0, 0, 10}, columns{6 * 25 / 20.0, 25 / 20.0, 0, 25};
  const auto expected = resampled(wide, 25, rows, columns, 7);
  const auto values = pixels_of(data, 0);
  for (std::size_t i = 0; i < expected.size(); ++i) REQUIRE(std::abs(values[i] - expected[i]) < 1e-5);
  CHECK(pixels_of(data, 0, 3) == values);  // a training varies nothing that is not asked for
}

TEST_CASE("random crops are the same in any batch and with any number of readers, and others in each epoch") {
  const TemporaryFolder folder;
  write_pictures(folder.path());
  const ImageFolderOptions options{.size = 8, .resize = 9, .random_crop = true};
  ImageFolderOptions many = options;
  many.readers = 4;
  const ImageFolder data(folder.path(), options), together(folder.path(), many);
  for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
    Batch batch(together.fields(), 11);
    const std::vector<std::uint64_t> samples{4, 1, 2, 2, 0, 3, 1, 1, 0, 4, 4};
    together.read({samples, epoch, 3}, batch);
    const auto values = batch.input().as<float>();
    for (std::size_t row = 0; row < samples.size(); ++row)
      REQUIRE(std::ranges::equal(values.subspan(row * 8 * 8 * 3, 8 * 8 * 3), pixels_of(data, samples[row], epoch)));
  }
  CHECK(pixels_of(data, 2, 1) != pixels_of(data, 2, 2));
  CHECK(pixels_of(data, 2, 1) != pixels_of(data, 2, 0));
}

TEST_CASE("a damaged picture is an error with file, sample, expectation and finding, or a sample of weight 0") {
  const TemporaryFolder folder;
  write_pictures(folder.path());
  const std::string jpeg = jpeg_of(40, 40, 3, noise(4800)), png = color_png(9, 9, noise(243));
  std::string flipped = png;
  flipped[flipped.find("IDAT") + 20] ^= 1;
  const std::vector<std::pair<std::string, const char*>> files{
      {jpeg.substr(0, jpeg.size() / 2), "whole JPEG"},
      {jpeg.substr(0, 30), "whole JPEG"},
      {jpeg.substr(0, 3), "whole JPEG"},
      {png.substr(0, png.size() / 2), "whole PNG"},
      {png.substr(0, 8), "whole PNG"},
      {flipped, "whole PNG"},
      {png.substr(0, 16) + std::string("\0\0\x40\0\0\0\x10\0", 8) + png.substr(24), "PNG"},  // larger, and its checksum
      {"text", "none's first bytes in 4 bytes"},
      {"", "none's first bytes in 0"}};
  const ImageFolderOptions options{.size = 8, .resize = 8, .readers = 2};
  for (const auto& [file, finding] : files) {
    write_file(folder / "dog/a.PNG", file);
    const ImageFolder strict(folder.path(), options);
    require_mentions(message_of<InputError>([&] { (void)pixels_of(strict, 3); }),
                     {"dog/a.PNG, sample 3", finding, ".skip_damaged"});
    ImageFolderOptions lenient = options;
    lenient.skip_damaged = true;
    const ImageFolder data(folder.path(), lenient);
    CHECK(data.damaged().empty());
    BatchLoader loader(data, SampleOrder(5, 1, false), BatchPlan(5, 5));
    for (int epoch = 0; epoch < 2; ++epoch) {
      const Batch& batch = loader.next();
      const auto weights = batch.weights().as<float>();
      CHECK(std::vector<float>(weights.begin(), weights.end()) == std::vector<float>{1, 1, 1, 0, 1});
      const auto values = batch.input().as<float>();
      CHECK(std::ranges::equal(values.subspan(3 * 192, 192), values.first(192)));  // a sound one's
    }
    CHECK(data.damaged() == std::vector<std::uint64_t>{3});
    CHECK(pixels_of(data, 3) == std::vector<float>(192));
  }
  std::filesystem::remove(folder / "dog/a.PNG");
  write_file(folder / "dog/a.png", jpeg);
  const ImageFolder data(folder.path(), options);
  std::filesystem::remove(folder / "dog/a.png");
  require_mentions(message_of<InputError>([&] { (void)pixels_of(data, 3); }),
                   {"dog/a.png, sample 3", "cannot be read"});
  std::filesystem::create_symlink("gone.png", folder / "dog/a.png");
  const ImageFolder linked(folder.path(), options);
  CHECK(linked.size() == 5);
  require_mentions(message_of<InputError>([&] { (void)pixels_of(linked, 3); }), {"dog/a.png", "cannot be read"});
}

TEST_CASE("of a batch with several damaged pictures the first one's error is thrown, whatever the readers") {
  const TemporaryFolder folder;
  for (int i = 0; i < 20; ++i)
    write_picture(folder / ("a/" + std::to_string(10 + i) + ".png"), i % 7 == 3 ? "bad" : color_png(4, 4, noise(48)));
  for (const std::size_t readers : {1, 3, 8}) {
    const ImageFolder data(folder.path(), {.size = 4, .resize = 4, .readers = readers});
    for (int times = 0; times < 20; ++times) {
      Batch batch(data.fields(), 20);
      std::vector<std::uint64_t> samples(20);
      for (std::size_t i = 0; i < 20; ++i) samples[i] = i;
      require_mentions(message_of<InputError>([&] { data.read({samples}, batch); }), {"a/13.png, sample 3"});
    }
  }
}

TEST_CASE("a folder that has no pictures, or options that cannot work, are refused") {
  const TemporaryFolder folder;
  const auto message = [&](const ImageFolderOptions& options = {}) {
    return message_of<InputError>([&] { const ImageFolder data(folder.path(), options); });
  };
  require_mentions(message(), {folder.path().string(), "a subfolder a class"});
  std::filesystem::create_directory(folder / "empty");
  require_mentions(message(), {"empty", "expected pictures"});
  require_mentions(message_of<InputError>([&] { const ImageFolder data(folder / "nowhere"); }), {"nowhere"});
  write_picture(folder / "empty/a.png", color_png(1, 1, {1, 2, 3}));
  CHECK(message().empty());
  require_mentions(message({.size = 9, .resize = 8}), {".size = 9", ".resize = 8"});
  require_mentions(message({.size = 0}), {".size = 0"});
  require_mentions(message({.readers = 0}), {".readers = 0"});
  require_mentions(message({.least_area = 2}), {"least area", "2"});
  const ImageFolder one(folder.path(), {.size = 8, .resize = 8});
  const std::uint64_t before = one.fingerprint();
  write_picture(folder / "empty/a.png", color_png(1, 2, {1, 2, 3, 4, 5, 6}));
  CHECK(one.fingerprint() != before);
}
