// Whatever a file holds, reading it ends with samples or with an InputError: files that are damaged at random.
// RONDA_FUZZ_ROUNDS files of each format are tried (scripts/fuzz_readers.sh: a million), as RONDA_TEST_SEED has them.
#include <array>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/data/cifar.hpp>
#include <ronda/data/csv.hpp>
#include <ronda/data/detail/picture_reader.hpp>
#include <ronda/data/labelled_text.hpp>
#include <ronda/data/mnist.hpp>
#include <ronda/data/numpy.hpp>
#include <ronda/data/text_windows.hpp>

#include "data/files.hpp"
#include "support/catch.hpp"
#include "support/seed.hpp"
#include "support/temporary_folder.hpp"
#ifdef RONDA_PICTURES
#include "data/pictures.hpp"
#endif

using namespace ronda;
using namespace ronda::test;

namespace {

/// Numbers at random, one after the other.
class Draw {
 public:
  Draw(std::uint64_t seed, std::uint64_t round) : key_(seed, Purpose::test, round) {}
  std::size_t below(std::size_t bound) { return key_.below(bound, count_++); }

 private:
  RngKey key_;
  std::uint64_t count_ = 0;
};

/// Numbers that break readers: counts of nothing, of everything, and one beside them.
std::uint64_t extreme(Draw& draw) {
  constexpr std::array<std::uint64_t, 9> numbers{
      0, 1, 0x7f, 0x80, 0xff, 0x7fffffff, 0x80000000, 0x7fffffffffffffff, 0xffffffffffffffff};
  return numbers[draw.below(numbers.size())];
}

/// `bytes` with one thing changed.
void damage(std::string& bytes, Draw& draw) {
  if (bytes.empty()) {
    bytes = "x";
    return;
  }
  const std::size_t at = draw.below(bytes.size()),
                    length = 1 + draw.below(std::min<std::size_t>(bytes.size() - at, 40));
  switch (draw.below(7)) {
    case 0: bytes[at] = static_cast<char>(bytes[at] ^ (1 << draw.below(8))); break;
    case 1: bytes[at] = static_cast<char>(draw.below(256)); break;
    case 2: bytes.resize(at); break;
    case 3: bytes.erase(at, length); break;
    case 4: bytes.insert(draw.below(bytes.size()), bytes.substr(at, length)); break;
    case 5: bytes.insert(at, length, static_cast<char>(draw.below(256))); break;
    default: {
      const std::string number = little_endian(extreme(draw), std::size_t{1} << draw.below(4));
      bytes.replace(at, number.size(), number);
    }
  }
}

/// A file that is sound, and what reads it.
struct Reader {
  std::string name, file;
  std::function<void(const std::filesystem::path&)> read;
};

void read_all(const Dataset& data) {
  Batch batch(data.fields(), 1);
  for (std::uint64_t sample = 0; sample < data.size(); ++sample) data.read({std::vector<std::uint64_t>{sample}}, batch);
}

std::vector<Reader> readers() {
  using Path = const std::filesystem::path&;
  const std::string idx = std::string("\0\0\x08\2\0\0\0\3\0\0\0\4", 12) + "abcdefghijkl";
  const std::string lines = "label\ttext\n1\tgood film\n0\tbad\n";
  const std::string array = npy("<f4", "(3, 2)", std::string(24, '\1'));
  const auto read_array = [](NumpyArray values) {
    std::vector<NumpyField> fields;
    fields.push_back({"input", std::move(values)});
    read_all(NumpyDataset(std::move(fields)));
  };
  const auto idx_reader = [](Path path) { (void)read_idx(path, 2); };
  const auto text_reader = [](Path path) { (void)tokenized(read_labelled_text(path), HashedWords(100), 5); };
  const auto npz_reader = [=](Path path) { read_array(read_npz(path, "x")); };
  std::vector<Reader> all{
      {"IDX", idx, idx_reader},
      {"gzipped IDX", gzipped(idx), idx_reader},
      {"CSV", "a,\"b\nc\"\n1,2\r\n\"3\",-4e5\n", [](Path path) { (void)read_csv(path); }},
      {"labelled text", lines, text_reader},
      {"gzipped text", gzipped(lines), text_reader},
      {"vocabulary", "good\nfilm\n", [](Path path) { (void)read_vocabulary(path); }},
      {"text windows", "the moon", [](Path path) { read_all(TextWindows(path, 3)); }},
      {"CIFAR-10", "\3" + std::string(3072, 'p'),
       [](Path path) {
         for (const char* name : {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
                                  "data_batch_5.bin", "test_batch.bin"})
           std::filesystem::copy_file(path, path.parent_path() / name,
                                      std::filesystem::copy_options::overwrite_existing);
         read_all(load_cifar10(path.parent_path()).train);
       }},
      {"CIFAR-100", std::string("\5\7", 2) + std::string(3072, 'p'),
       [](Path path) {
         std::filesystem::copy_file(path, path.parent_path() / "test.bin",
                                    std::filesystem::copy_options::overwrite_existing);
         read_all(load_cifar100(path.parent_path()).train);
       }},
      {".npy", array, [=](Path path) { read_array(read_npy(path)); }},
      {".npy of int64", npy("<i8", "(3,)", std::string(24, '\0')), [=](Path path) { read_array(read_npy(path)); }},
      {".npz", zip({{"y.npy", array}, {"x.npy", array}}), npz_reader},
      {"compressed .npz", zip({{"x.npy", array, true}}), npz_reader},
      {".npz with zip64", zip({{"x.npy", array, true}}, true, "comment"), npz_reader}};
  const auto netpbm_reader = [](Path path) {
    std::vector<float> sample(2 * 2 * 3);
    PictureReader().read_middle(path, 2, 2, sample.data());
  };
  all.push_back({"PPM", "P6\n# made by hand\n3 2\n255\n" + std::string(18, 'p'), netpbm_reader});
  all.push_back({"PGM", "P5 3 2 15 " + std::string(6, '\7'), netpbm_reader});
#ifdef RONDA_PICTURES
  const auto picture_reader = [](auto decode) {
    return [decode](Path path) {
      Picture picture;
      const std::string file = read_file(path);
      decode(std::as_bytes(std::span(file)), picture);
    };
  };
  std::vector<std::uint8_t> pixels(16 * 16 * 3), noise(40 * 40 * 3);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i * i);
  for (std::size_t i = 0; i < noise.size(); ++i) noise[i] = static_cast<std::uint8_t>(i * i / 7);
  all.push_back({"JPEG", jpeg_of(16, 16, 3, pixels, {.quality = 70}),
                 picture_reader([](auto file, Picture& picture) { decode_jpeg(file, picture); })});
  all.push_back({"a JPEG's part", jpeg_of(40, 40, 3, noise, {.quality = 70, .across = 2, .down = 2}),
                 picture_reader([](auto file, Picture& picture) {
                   decode_jpeg(file, picture, [](std::int64_t height, std::int64_t width) {
                     return CropBox{height / 3, width / 2, (height + 2) / 3, (width + 1) / 2};
                   });
                 })});
  all.push_back(
      {"PNG", png_of({8, 8, 2, 8, {pixels.begin(), pixels.begin() + 192}, true}), picture_reader(decode_png)});
#endif
  return all;
}

std::uint64_t rounds() {
  const char* text = std::getenv("RONDA_FUZZ_ROUNDS");
  return text == nullptr ? 200 : std::stoull(text);
}

}  // namespace

TEST_CASE("a file that is damaged at random gives samples or an InputError that names it", "[damage]") {
  const TemporaryFolder folder;
  const auto path = folder / "train.bin";
  const std::vector<Reader> all = readers();
  for (const Reader& reader : all) {
    INFO(reader.name);
    write_file(path, reader.file);
    REQUIRE_NOTHROW(reader.read(path));
  }
  const std::uint64_t files = rounds() * all.size();
  std::size_t refused = 0;
  for (std::uint64_t round = 0; round < files; ++round) {
    const Reader& reader = all[round % all.size()];
    Draw draw(seed(), round);
    std::string file = reader.file;
    for (std::size_t times = 1 + draw.below(3); times > 0; --times) damage(file, draw);
    write_file(path, file);
    INFO("seed " << seed() << ", round " << round << ", " << reader.name);
    try {
      reader.read(path);
    } catch (const InputError& error) {
      ++refused;
      const bool is_picture = dynamic_cast<const PictureError*>(&error) != nullptr;  // which ImageFolder names
      if (!is_picture) REQUIRE(std::string(error.what()).find(".bin") != std::string::npos);
    } catch (const std::exception& error) {
      FAIL(error.what());
    }
  }
  CHECK(refused > files / 3);  // most damage is seen; the rest is other numbers, or another text
}
