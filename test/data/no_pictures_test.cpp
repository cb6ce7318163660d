// A build without JPEG or PNG.
#include <ronda/core/error.hpp>
#include <ronda/data/image_folder.hpp>
#include <ronda/data/optional_formats.hpp>
#include <ronda/data/picture_files.hpp>

#include "support/catch.hpp"
#include "support/message.hpp"
#include "support/temporary_folder.hpp"

using namespace ronda;
using namespace ronda::test;

TEST_CASE("a build without a picture's library says so, and what to install, and skips nothing for it") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "a");
  for (const OptionalFormat& format : optional_formats()) {
    if (!format.library.empty() || format.name == "HDF5") continue;
    write_file(folder / "a/1.jpg", format.name == "JPEG" ? "\xff\xd8\xff" : "\x89PNG\r\n\x1a\n");
    const ImageFolder data(folder.path(), {.skip_damaged = true});
    Batch batch(data.fields(), 1);
    require_mentions(message_of<InputError>([&] { data.read({std::vector<std::uint64_t>{0}}, batch); }),
                     {"a/1.jpg", "lacks " + format.name, format.package});
    if (format.name == "PNG")
      require_mentions(message_of<InputError>([] { static_cast<void>(encode_png(1, 1, {})); }), {"lacks PNG"});
  }
}
