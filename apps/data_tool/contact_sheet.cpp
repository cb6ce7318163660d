#include "contact_sheet.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/data/picture_files.hpp>
#include <ronda/runtime/io/atomic_file.hpp>

namespace ronda::apps {

void write_contact_sheet(const Dataset& data, const SampleRequest& request, std::size_t columns,
                         const std::filesystem::path& file) {
  const Shape image = data.fields()[0].shape;
  if (image.rank() != 3 || (image[2] != 1 && image[2] != 3))
    throw InputError("a contact sheet is of images (height, width, 1 or 3), the data has " + image.text());
  const std::size_t count = request.samples.size(), across = std::min(columns, count);
  const std::size_t down = (count + across - 1) / across;
  const auto height = static_cast<std::size_t>(image[0]), width = static_cast<std::size_t>(image[1]),
             channels = static_cast<std::size_t>(image[2]);
  const std::size_t sheet_height = down * (height + 1) - 1, sheet_width = across * (width + 1) - 1;
  constexpr std::size_t most = std::size_t{1} << 28;  // pixels
  if (sheet_height > most / sheet_width)
    throw InputError("the contact sheet would have " + std::to_string(sheet_height) + " x " +
                     std::to_string(sheet_width) + " pixels; show fewer samples");
  Batch batch(data.fields(), count);
  data.read(request, batch);
  const auto pixels = batch.input().as<const float>();
  std::vector<std::uint8_t> sheet(sheet_height * sheet_width * 3);
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t y = 0; y < height; ++y)
      for (std::size_t x = 0; x < width; ++x)
        for (std::size_t c = 0; c < 3; ++c) {
          const float value = pixels[((i * height + y) * width + x) * channels + std::min(c, channels - 1)];
          const std::size_t row = i / across * (height + 1) + y, column = i % across * (width + 1) + x;
          sheet[(row * sheet_width + column) * 3 + c] =
              static_cast<std::uint8_t>(std::lround(255 * std::clamp(value, 0.0F, 1.0F)));
        }
  const std::vector<std::byte> png =
      encode_png(static_cast<std::uint32_t>(sheet_height), static_cast<std::uint32_t>(sheet_width), sheet);
  AtomicFile to(file);
  to.write(png);
  to.commit();
}

}  // namespace ronda::apps
