// Arrays as NumPy saves them: .npy and .npz, put together here byte by byte.
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/data/numpy.hpp>

#include "data/files.hpp"
#include "support/catch.hpp"
#include "support/message.hpp"
#include "support/temporary_folder.hpp"

using namespace ronda;
using namespace ronda::test;

namespace {

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

template <class T>
std::vector<T> row_of(const Dataset& data, const char* field, std::uint64_t sample) {
  Batch batch(data.fields(), 2);
  data.read({std::vector<std::uint64_t>{0, sample}}, batch);
  const auto all = batch.field(field).as<T>();
  return {all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2), all.end()};
}

}  // namespace

TEST_CASE("arrays of every type that NumPy saves become fields of the types that layers and losses read") {
  const TemporaryFolder folder;
  const auto path = folder / "array.npy";
  const auto array = [&](const char* type, const std::string& values, const char* shape = "(2, 2)") {
    write_file(path, npy(type, shape, values));
    return read_npy(path);
  };
  const auto data = [&](const char* type, const std::string& values, ByteValues bytes = ByteValues::unit) {
    std::vector<NumpyField> fields;
    fields.push_back({"input", array(type, values), bytes});
    return NumpyDataset(std::move(fields));
  };
  using Floats = std::vector<float>;
  using Numbers = std::vector<std::int32_t>;
  const std::string bytes = bytes_of<std::uint8_t>({0, 1, 51, 255});
  CHECK(row_of<float>(data("<f4", bytes_of<float>({1, 2, 3, -0.5F})), "input", 1) == Floats{3, -0.5F});
  CHECK(row_of<float>(data("<f8", bytes_of<double>({1, 2, 0.1, 1e-9})), "input", 1) == Floats{0.1F, 1e-9F});
  CHECK(row_of<float>(data("<f2", bytes_of<std::uint16_t>({0, 0, 0x3c00, 0xc500})), "input", 1) == Floats{1, -5});
  CHECK(row_of<float>(data("|u1", bytes), "input", 1) == Floats{51 / 255.0F, 1});
  CHECK(row_of<std::uint8_t>(data("|u1", bytes, ByteValues::same), "input", 1) == std::vector<std::uint8_t>{51, 255});
  CHECK(row_of<std::int32_t>(data("|u1", bytes, ByteValues::label), "input", 1) == Numbers{51, 255});
  CHECK(row_of<std::int32_t>(data("|i1", bytes_of<std::int8_t>({0, 1, -128, 127})), "input", 1) == Numbers{-128, 127});
  CHECK(row_of<std::int32_t>(data("<i4", bytes_of<std::int32_t>({0, 1, -5, 6})), "input", 1) == Numbers{-5, 6});
  const std::int64_t least = INT32_MIN, most = INT32_MAX;
  CHECK(row_of<std::int32_t>(data("<i8", bytes_of<std::int64_t>({0, 1, least, most})), "input", 1) ==
        Numbers{INT32_MIN, INT32_MAX});
  for (const std::int64_t bad : {most + 1, least - 1, INT64_MAX}) {
    const NumpyDataset large = data("<i8", bytes_of<std::int64_t>({0, 1, 2, bad}));
    require_mentions(message_of<InputError>([&] { (void)row_of<std::int32_t>(large, "input", 1); }),
                     {"array.npy, sample 1", "32 bits", std::to_string(bad)});
  }
  CHECK(data("<i8", bytes_of<std::int64_t>({0, 1, 2, 3})).stored().empty());
  REQUIRE(data("|u1", bytes).stored().size() == 1);
  CHECK(data("|u1", bytes).stored()[0].decode == Decode::unit);
  CHECK(array("<f4", bytes_of<float>({1, 2, 3, 4}), "(4,)").shape == Shape{4});
  CHECK(array("<f4", bytes_of<float>({1}), "()").shape == Shape{});
}

TEST_CASE("features and labels of two files are a dataset") {
  const TemporaryFolder folder;
  std::vector<float> features(3 * 2 * 2);
  for (std::size_t i = 0; i < features.size(); ++i) features[i] = static_cast<float>(i);
  write_file(folder / "features.npy", npy("<f4", "(3, 2, 2)", bytes_of(features)));
  write_file(folder / "labels.npy", npy("<i8", "(3,)", bytes_of<std::int64_t>({7, 0, 9})));
  write_file(folder / "bytes.npy", npy("|u1", "(3, 1)", "abc"));
  const NumpyDataset data(read_npy(folder / "features.npy"), read_npy(folder / "labels.npy"));
  CHECK(data.size() == 3);
  CHECK(data.fields()[0].shape == Shape{2, 2});
  CHECK(data.fields()[1].shape == Shape{});
  CHECK(data.fields()[1].dtype == DType::int32);
  CHECK(row_of<float>(data, "input", 2) == std::vector<float>{8, 9, 10, 11});
  CHECK(row_of<std::int32_t>(data, "target", 2) == std::vector<std::int32_t>{9});
  const NumpyDataset labelled(read_npy(folder / "bytes.npy"), read_npy(folder / "bytes.npy"));
  CHECK(labelled.fields()[0].dtype == DType::float32);  // pixels
  CHECK(row_of<std::int32_t>(labelled, "target", 1) == std::vector<std::int32_t>{'b'});
  write_file(folder / "two.npy", npy("|u1", "(2,)", "ab"));
  write_file(folder / "none.npy", npy("|u1", "(0, 3)", ""));
  write_file(folder / "empty.npy", npy("|u1", "(3, 0)", ""));
  write_file(folder / "scalar.npy", npy("|u1", "()", "a"));
  const auto message = [&](const char* file) {
    return message_of<InputError>(
        [&] { const NumpyDataset refused(read_npy(folder / "features.npy"), read_npy(folder / file)); });
  };
  require_mentions(message("two.npy"), {"two.npy has 2 samples", "features.npy has 3"});
  for (const char* file : {"none.npy", "empty.npy", "scalar.npy"})
    require_mentions(message(file), {file, "first axis"});
  REQUIRE_THROWS_AS(NumpyDataset(std::vector<NumpyField>{}), InputError);
}

TEST_CASE("headers of all versions, in any order of keys, are read") {
  const TemporaryFolder folder;
  const auto path = folder / "array.npy";
  for (const int version : {1, 2, 3}) {
    write_file(path, npy_of("{'shape': (2,1),'fortran_order':False,'descr':'|u1'}", "ab", version));
    CHECK(read_npy(path).shape == Shape{2, 1});
    CHECK(read_npy(path).values.bytes() == 2);
  }
}

TEST_CASE("a damaged .npy file, or one of another kind, is refused with what was expected and found") {
  const TemporaryFolder folder;
  const auto path = folder / "array.npy";
  const auto message = [&](const std::string& content) {
    write_file(path, content);
    return message_of<InputError>([&] { (void)read_npy(path); });
  };
  const std::string good = npy("|u1", "(2, 2)", "abcd");
  REQUIRE(message(good).empty());
  for (std::size_t bytes = 1; bytes < good.size(); ++bytes) {  // cut off anywhere
    INFO(bytes);
    require_mentions(message(good.substr(0, bytes)), {"array.npy", "damaged"});
  }
  require_mentions(message(good + "e"), {"4 bytes", "(2, 2)", "found 5"});
  require_mentions(message(""), {"array.npy", "empty"});
  require_mentions(message("PK\3\4" + good), {"0x93"});
  require_mentions(message(npy_of("{}", "", 4)), {"version 1, 2 or 3", "found 4"});
  require_mentions(message(npy(">f4", "(1,)", "abcd")), {"'>f4'", "little-endian", "astype"});
  require_mentions(message(npy("<c8", "(1,)", "abcdabcd")), {"'<c8'"});
  require_mentions(message(npy("|O", "(1,)", "abcdabcd")), {"'|O'"});
  require_mentions(message(npy_of("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "abcd")),
                   {"several fields"});
  require_mentions(message(npy_of("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 2), }", "abcd")),
                   {"Fortran", "ascontiguousarray"});
  require_mentions(message(npy("|u1", "(1, 1, 1, 1, 1, 1, 1)", "a")), {"more than 6 axes"});
  for (const char* shape : {"(-1,)", "(2, x)", "(99999999999999999999,)", "(4294967296, 4294967296, 4294967296)",
                            "(0, 4294967296, 4294967296, 4294967296)", "4", "(4"})
    require_mentions(message(npy("|u1", shape, "abcd")), {"array.npy", "header"});
  require_mentions(message(npy_of("{'descr': '|u1', 'fortran_order': False, }", "")), {"another dictionary"});
  require_mentions(message(npy_of("{'descr': '|u1', 'order': False, }", "")), {"unknown key"});
  require_mentions(message(npy("|u1", "(1000000000000,)", "abcd")), {"1000000000000 bytes", "found 4"});
}

TEST_CASE("arrays of an archive are read, stored or deflated, with and without zip64") {
  const TemporaryFolder folder;
  const auto path = folder / "set.npz";
  const std::string long_one = bytes_of(std::vector<float>(5000, 1.5F));
  for (const bool packed : {false, true})
    for (const bool wide : {false, true})
      for (const char* comment : {"", "a comment"}) {
        write_file(path, zip({{"x.npy", npy("<f4", "(5000,)", long_one), packed},
                              {"y.npy", npy("|u1", "(3,)", "abc"), packed},
                              {"none.npy", npy("|u1", "(0,)", ""), packed}},
                             wide, comment));
        const NumpyArray x = read_npz(path, "x");
        CHECK(x.shape == Shape{5000});
        REQUIRE(x.values.bytes() == long_one.size());
        CHECK(std::memcmp(x.values.data(), long_one.data(), long_one.size()) == 0);
        CHECK(std::memcmp(read_npz(path, "y").values.data(), "abc", 3) == 0);
        CHECK(read_npz(path, "none").values.bytes() == 0);
      }
  require_mentions(message_of<InputError>([&] { (void)read_npz(path, "z"); }), {"set.npz", "'z.npy'", "x.npy, y.npy"});
}

TEST_CASE("an array of an archive that is stored lies in the mapped file, beside others") {
  const TemporaryFolder folder;
  const auto path = folder / "set.npz";
  const std::string x = npy("|u1", "(3,)", "abc"), y = npy("|u1", "(3,)", "def");
  write_file(path, zip({{"x.npy", x}, {"packed.npy", x, true}, {"y.npy", y}}));
  const NumpyArray array = read_npz(path, "y");
  std::fstream(path).seekp(static_cast<std::streamoff>(read_file(path).find("def"))) << "DEF";
  CHECK(std::memcmp(array.values.data(), "DEF", 3) == 0);  // not a copy
}

TEST_CASE("a damaged archive is refused with file, member, and what is wrong") {
  const TemporaryFolder folder;
  const auto path = folder / "set.npz";
  const auto message = [&](const std::string& content) {
    write_file(path, content);
    return message_of<InputError>([&] { (void)read_npz(path, "x"); });
  };
  const std::string array = npy("|u1", "(400,)", std::string(400, 'a'));
  for (const bool packed : {false, true})
    for (const bool wide : {false, true}) {
      const std::string good = zip({{"x.npy", array, packed}}, wide);
      REQUIRE(message(good).empty());
      for (std::size_t bytes = 1; bytes < good.size(); bytes += 7)
        require_mentions(message(good.substr(0, bytes)), {"set.npz", "damaged"});
    }
  std::string flipped = zip({{"x.npy", array, true}});
  const std::size_t sum = flipped.find("PK\1\2") + 16;
  flipped[sum] ^= 1;
  require_mentions(message(flipped), {"set.npz", "'x.npy'", "checksum"});
  std::string larger = zip({{"x.npy", array, true}});
  larger[larger.find("PK\1\2") + 26] ^= 1;  // 64 KiB more
  require_mentions(message(larger), {"'x.npy'", "bytes"});
  std::string huge = zip({{"x.npy", array, true}});
  huge[huge.find("PK\1\2") + 27] = 0x7f;  // 2 GB, which no memory is taken for
  require_mentions(message(huge), {"'x.npy'", "cannot become"});
  std::string encrypted = zip({{"x.npy", array}});
  encrypted[encrypted.find("PK\1\2") + 8] = 1;
  require_mentions(message(encrypted), {"encrypted"});
  std::string bzip = zip({{"x.npy", array}});
  bzip[bzip.find("PK\1\2") + 10] = 12;
  require_mentions(message(bzip), {"method 12"});
  for (const bool packed : {false, true}) {
    std::string many = zip({{"x.npy", array, packed}}, true);
    const std::size_t count = many.find("PK\6\6") + 24;  // of members, twice
    many.replace(count, 16, little_endian(1ULL << 40, 8) + little_endian(1ULL << 40, 8));
    require_mentions(message(many), {"set.npz", "damaged"});  // no memory is taken for them
    std::string beyond = zip({{"x.npy", array, packed}});
    beyond.replace(beyond.find("PK\1\2") + 42, 4, little_endian(0x7fffffff, 4));  // its header
    require_mentions(message(beyond), {"'x.npy'", "damaged"});
  }
  require_mentions(message(zip({{"x.npy", "no array"}})), {"set.npz[x]", "0x93"});
  require_mentions(message(zip({})), {"set.npz", "no 'x.npy'"});
}

TEST_CASE("a header of .npy is read back with its shape and type, and its values are aligned") {
  const TemporaryFolder folder;
  for (const Shape& shape : {Shape{}, Shape{3}, Shape{2, 5}, Shape{0, 7}, Shape{1, 2, 3, 1, 2, 3}})
    for (const DType dtype :
         {DType::float16, DType::float32, DType::float64, DType::uint8, DType::int8, DType::int32, DType::int64}) {
      const std::string header = npy_header(shape, dtype);
      CHECK(header.size() % 64 == 0);
      write_file(folder / "array.npy",
                 header + std::string(static_cast<std::size_t>(shape.count()) * size_of(dtype), 'x'));
      const NumpyArray array = read_npy(folder / "array.npy");
      CHECK(array.shape == shape);
      CHECK(array.dtype == dtype);
    }
  CHECK(npy_header(Shape{3}, DType::float32).find("(3, )") != std::string::npos);
  CHECK_THROWS_AS(npy_header(Shape{3}, DType::bfloat16), LogicError);
}
