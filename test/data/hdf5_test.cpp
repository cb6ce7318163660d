// HDF5 files, made here by the library itself.
#include <hdf5.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/data/hdf5.hpp>
#include <ronda/data/loader.hpp>

#include "support/catch.hpp"
#include "support/message.hpp"
#include "support/temporary_folder.hpp"

using namespace ronda;
using namespace ronda::test;

namespace {

/// A file to be written.
class Writer {
 public:
  explicit Writer(const std::filesystem::path& path)
      : file_(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)) {}
  ~Writer() { H5Fclose(file_); }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  bool compact = false;  ///< values beside their array's header

  /// @param type   in the file
  /// @param chunk  samples in one, compressed; 0: in one piece
  template <class T>
  void write(const char* name, const std::vector<hsize_t>& extents, hid_t memory, hid_t type,
             const std::vector<T>& values, hsize_t chunk = 0) {
    const hid_t space = H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr);
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE), link = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(link, 1);
    if (compact) H5Pset_layout(creation, H5D_COMPACT);
    if (chunk > 0) {
      std::vector<hsize_t> chunks = extents;
      chunks[0] = chunk;
      H5Pset_chunk(creation, static_cast<int>(chunks.size()), chunks.data());
      H5Pset_deflate(creation, 4);
    }
    const hid_t dataset = H5Dcreate2(file_, name, type, space, link, creation, H5P_DEFAULT);
    if (!values.empty()) H5Dwrite(dataset, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
    H5Dclose(dataset);
    H5Pclose(link);
    H5Pclose(creation);
    H5Sclose(space);
  }

  /// A dataset of float32 without values. Closes both.
  void make(const char* name, hid_t space, hid_t creation) {
    H5Dclose(H5Dcreate2(file_, name, H5T_IEEE_F32LE, space, H5P_DEFAULT, creation, H5P_DEFAULT));
    H5Pclose(creation);
    H5Sclose(space);
  }

 private:
  hid_t file_;
};

std::vector<float> eighths(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i) / 8;
  return values;
}

/// Seven samples in all the ways that a file may have them.
void write_set(const std::filesystem::path& path) {
  Writer writer(path);
  writer.write("train/x", {7, 2, 3}, H5T_NATIVE_FLOAT, H5T_IEEE_F32LE, eighths(42), 2);
  writer.write("plain", {7, 2, 3}, H5T_NATIVE_FLOAT, H5T_IEEE_F32LE, eighths(42));
  writer.write("big_endian", {7, 2, 3}, H5T_NATIVE_FLOAT, H5T_IEEE_F32BE, eighths(42));
  writer.write("double", {7, 2, 3}, H5T_NATIVE_FLOAT, H5T_IEEE_F64LE, eighths(42));
  writer.write("train/y", {7}, H5T_NATIVE_INT32, H5T_STD_I64LE, std::vector<std::int32_t>{6, 5, 4, 3, 2, 1, 0});
  writer.write("y32", {7}, H5T_NATIVE_INT32, H5T_STD_I32BE, std::vector<std::int32_t>{6, 5, 4, 3, 2, 1, 0});
  writer.write("y8", {7}, H5T_NATIVE_INT32, H5T_STD_U8LE, std::vector<std::int32_t>{6, 5, 4, 3, 2, 1, 255});
  writer.write("signed", {7}, H5T_NATIVE_INT32, H5T_STD_I8LE, std::vector<std::int32_t>{6, 5, 4, 3, 2, 1, -128});
  writer.write("huge", {7}, H5T_NATIVE_INT64, H5T_STD_I64LE,
               std::vector<std::int64_t>{0, 0, 0, std::int64_t{1} << 31, 0, 0, 0});
  writer.write("u16", {7}, H5T_NATIVE_INT32, H5T_STD_U16LE, std::vector<std::int32_t>(7));
  writer.write("half", {7}, H5T_NATIVE_FLOAT, H5T_IEEE_F32LE, eighths(7));
  writer.write("six", {6}, H5T_NATIVE_FLOAT, H5T_IEEE_F32LE, eighths(6));
  writer.write("none", {0, 3}, H5T_NATIVE_FLOAT, H5T_IEEE_F32LE, std::vector<float>{});
  writer.write("scalar", {}, H5T_NATIVE_FLOAT, H5T_IEEE_F32LE, eighths(1));
  writer.write("axes", {7, 1, 1, 1, 1, 1, 1}, H5T_NATIVE_FLOAT, H5T_IEEE_F32LE, eighths(7));
}

}  // namespace

TEST_CASE("samples of an HDF5 file are read by number, whatever the order of its bytes, its types and chunks") {
  const TemporaryFolder folder;
  const auto path = folder / "set.h5";
  write_set(path);
  const std::vector<std::uint64_t> samples{3, 6, 0, 6};
  for (const char* input : {"train/x", "plain", "big_endian", "double"})
    for (const char* target : {"train/y", "y32", "y8", "signed"}) {
      INFO(input << " " << target);
      const auto data = open_hdf5(path, {{"input", input}, {"target", target, ByteValues::label}});
      REQUIRE(data->size() == 7);
      CHECK(data->fields()[0].shape == Shape{2, 3});
      CHECK(data->fields()[0].dtype == DType::float32);
      CHECK(data->fields()[1].dtype == DType::int32);
      Batch batch(data->fields(), 4);
      data->read({samples}, batch);
      for (std::size_t row = 0; row < samples.size(); ++row) {
        for (std::size_t i = 0; i < 6; ++i)
          REQUIRE(batch.input().as<float>()[row * 6 + i] == static_cast<float>(samples[row] * 6 + i) / 8);
        const std::int32_t last = std::string(target) == "y8" ? 255 : std::string(target) == "signed" ? -128 : 0;
        CHECK(batch.target().as<std::int32_t>()[row] ==
              (samples[row] == 6 ? last : 6 - static_cast<std::int32_t>(samples[row])));
      }
    }
  const auto pixels = open_hdf5(path, {{"input", "y8"}}), bytes = open_hdf5(path, {{"input", "y8", ByteValues::same}});
  Batch floats(pixels->fields(), 1), same(bytes->fields(), 1);
  pixels->read({std::vector<std::uint64_t>{6}}, floats);
  bytes->read({std::vector<std::uint64_t>{6}}, same);
  CHECK(floats.input().as<float>()[0] == 1);
  CHECK(same.input().as<std::uint8_t>()[0] == 255);
}

TEST_CASE("two loaders read one HDF5 file at the same time, and each gets its samples") {
  const TemporaryFolder folder;
  const auto path = folder / "set.h5";
  write_set(path);
  const auto data = open_hdf5(path, {{"input", "train/x"}, {"target", "train/y"}});
  CHECK(data->origin(0) == path.string());
  const auto walk = [&](std::uint64_t seed, int& wrong) {
    BatchLoader loader(*data, SampleOrder(7, seed, true), BatchPlan(7, 2), true);
    for (int i = 0; i < 40; ++i) {
      const Batch& batch = loader.next();
      for (std::size_t row = 0; row < batch.real(); ++row)
        wrong +=
            batch.input().as<float>()[row * 6] != static_cast<float>(6 - batch.target().as<std::int32_t>()[row]) * 6 / 8
                ? 1
                : 0;
    }
  };
  int one = 0, other = 0;
  std::thread beside([&] { walk(1, one); });
  walk(2, other);
  beside.join();
  CHECK(one + other == 0);
}

TEST_CASE("an HDF5 file that cannot be used is refused with file, dataset, expectation and finding") {
  const TemporaryFolder folder;
  const auto path = folder / "set.h5";
  write_set(path);
  const auto message = [&](const std::vector<Hdf5Field>& fields) {
    return message_of<InputError>([&] { (void)open_hdf5(path, fields); });
  };
  require_mentions(message({{"input", "nowhere"}}), {"set.h5[nowhere]", "found none", "doesn't exist"});
  require_mentions(message({{"input", "train"}}), {"set.h5[train]", "found none"});  // a group
  require_mentions(message({{"input", "u16"}}), {"set.h5[u16]", "uint8", "of 2 bytes"});
  require_mentions(message({{"input", "none"}}), {"set.h5[none]", "first axis", "(0, 3)"});
  require_mentions(message({{"input", "scalar"}}), {"set.h5[scalar]", "from 1 to 6 axes", "found 0"});
  require_mentions(message({{"input", "axes"}}), {"set.h5[axes]", "found 7"});
  require_mentions(message({{"input", "plain"}, {"target", "six"}}),
                   {"set.h5[six] has 6 samples", "set.h5[plain] has 7"});
  require_mentions(message({{"input", "plain"}, {"input", "y8"}}), {"two fields", "'input'"});
  require_mentions(message({}), {"set.h5", "fields"});
  const auto huge = open_hdf5(path, {{"target", "huge"}});
  Batch batch(huge->fields(), 1);
  require_mentions(message_of<InputError>([&] { huge->read({std::vector<std::uint64_t>{3}}, batch); }),
                   {"set.h5[huge], sample 3", "32 bits", "2147483648"});
  const auto plain = open_hdf5(path, {{"input", "plain"}});
  CHECK(plain->fingerprint() != open_hdf5(path, {{"input", "double"}, {"target", "y8"}})->fingerprint());
  CHECK(plain->fingerprint() == open_hdf5(path, {{"input", "plain"}})->fingerprint());
  write_file(folder / "text.h5", "no HDF5");
  require_mentions(message_of<InputError>([&] {
                     (void)open_hdf5(folder / "text.h5", {{"input", "x"}});
                   }),
                   {"text.h5", "expected an HDF5 file"});
  require_mentions(message_of<InputError>([&] { (void)open_hdf5(folder / "none.h5", {{"input", "x"}}); }), {"none.h5"});
}

TEST_CASE("an HDF5 array that its file cannot hold is refused before it takes memory") {
  const TemporaryFolder folder;
  const auto path = folder / "set.h5";
  {
    Writer writer(path);
    writer.write("many", {1 << 20, 1 << 20}, H5T_NATIVE_FLOAT, H5T_IEEE_F32LE, std::vector<float>{}, 1);
    writer.write("large", {2, 1 << 30}, H5T_NATIVE_FLOAT, H5T_IEEE_F32LE, std::vector<float>{});
    writer.write("unwritten", {7, 2}, H5T_NATIVE_FLOAT, H5T_IEEE_F32LE, std::vector<float>{});
    const hsize_t samples = 4, most = H5S_UNLIMITED, chunk = 1 << 28;
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(creation, 1, &chunk);
    writer.make("chunk", H5Screate_simple(1, &samples, &most), creation);
    writer.write("equal", {1000, 4000}, H5T_NATIVE_FLOAT, H5T_IEEE_F32LE, std::vector<float>(4'000'000, 1), 1000);
  }
  for (const char* name : {"many", "large", "chunk"})
    require_mentions(message_of<InputError>([&] {
                       (void)open_hdf5(path, {{"input", name}});
                     }),
                     {std::string("set.h5[") + name + "]", "promise more values", "can hold", "damaged"});
  CHECK(open_hdf5(path, {{"input", "unwritten"}})->size() == 7);  // HDF5 gives the fill value
  CHECK(std::filesystem::file_size(path) < 40'000);               // of 16 MB: as small as deflate makes it
  CHECK(open_hdf5(path, {{"input", "equal"}})->size() == 1000);
}

TEST_CASE("an HDF5 array whose stored size is not that of its shape is refused") {
  const TemporaryFolder folder;
  const auto path = folder / "set.h5";
  const std::vector<float> values = eighths(7);
  {
    Writer writer(path);
    writer.compact = true;
    writer.write("x", {7}, H5T_NATIVE_FLOAT, H5T_IEEE_F32LE, values);
  }
  std::string bytes = read_file(path);
  const std::size_t at =
      bytes.find(std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)));
  REQUIRE(at != std::string::npos);
  REQUIRE(bytes[at - 2] == 28);  // the size, of 16 bits, stands before the values
  bytes[at - 2] = 0;
  write_file(path, bytes);
  const std::string said = message_of<InputError>([&] { (void)open_hdf5(path, {{"input", "x"}}); });
  if (said.find("expected a dataset") == std::string::npos)
    require_mentions(said, {"set.h5[x]", "expected 28 bytes", "(7)", "found 0"});
  else  // HDF5 1.14 sees it
    require_mentions(said, {"set.h5[x]", "size"});
}

TEST_CASE("an HDF5 array may lie in other files") {
  const TemporaryFolder folder;
  const auto path = folder / "set.h5", apart = folder / "apart.h5";
  const std::vector<float> values = eighths(40'000);
  Writer(apart).write("x", {4, 10'000}, H5T_NATIVE_FLOAT, H5T_IEEE_F32LE, values);
  {
    Writer writer(path);
    const std::array<hsize_t, 2> extents{400, 10'000}, part{4, 10'000}, from{396, 0};
    const hid_t whole = H5Screate_simple(2, extents.data(), nullptr), piece = H5Screate_simple(2, part.data(), nullptr);
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Sselect_hyperslab(whole, H5S_SELECT_SET, from.data(), nullptr, part.data(), nullptr);
    H5Pset_virtual(creation, whole, "apart.h5", "x", piece);
    writer.make("x", whole, creation);
    H5Sclose(piece);
  }
  REQUIRE(400 * 10'000 * 4 / 1032 > std::filesystem::file_size(path));
  const auto data = open_hdf5(path, {{"input", "x"}});
  Batch batch(data->fields(), 1);
  data->read({std::vector<std::uint64_t>{398}}, batch);
  CHECK(batch.input().as<float>()[3] == values[20'003]);
}

TEST_CASE("a compressed chunk that is damaged is an error of the sample that is in it") {
  const TemporaryFolder folder;
  const auto path = folder / "set.h5";
  {
    Writer writer(path);
    std::vector<float> noise(64 * 100);
    for (std::size_t i = 0; i < noise.size(); ++i) noise[i] = static_cast<float>(i * 2654435761U % 1000);
    writer.write("x", {64, 100}, H5T_NATIVE_FLOAT, H5T_IEEE_F32LE, noise, 64);
  }
  std::string bytes = read_file(path);
  for (std::size_t i = bytes.size() * 3 / 4; i < bytes.size() * 3 / 4 + 200; ++i)
    bytes[i] = static_cast<char>(~bytes[i]);
  write_file(path, bytes);
  const auto data = open_hdf5(path, {{"input", "x"}});
  Batch batch(data->fields(), 1);
  require_mentions(message_of<InputError>([&] { data->read({std::vector<std::uint64_t>{5}}, batch); }),
                   {"set.h5[x]", "sample 5", "damaged"});
}

TEST_CASE("arrays that are written piece by piece are read back, and no file is overwritten") {
  const TemporaryFolder folder;
  const auto path = folder / "made.h5";
  const std::vector<std::uint8_t> pixels{1, 2, 3, 4, 5, 250};
  const std::vector<std::int32_t> labels{-7, 8, 9};
  {
    Hdf5Writer writer(path, {{"input", Shape{3, 2}, DType::uint8}, {"target", Shape{3}, DType::int32}});
    writer.write(0, std::as_bytes(std::span(pixels).first(4)));
    writer.write(1, std::as_bytes(std::span(labels)));
    writer.write(0, std::as_bytes(std::span(pixels).subspan(4)));
    writer.flush();
    require_mentions(message_of<InputError>([&] { Hdf5Writer(path, {}); }), {"made.h5", "cannot create"});
    CHECK_THROWS_AS(writer.write(0, std::as_bytes(std::span(pixels).first(2))), ResourceError);  // there is no fourth
  }
  const auto data = open_hdf5(path, {{"input", "input", ByteValues::same}, {"target", "target"}});
  REQUIRE(data->size() == 3);
  Batch batch(data->fields(), 3);
  data->read({std::vector<std::uint64_t>{0, 1, 2}}, batch);
  CHECK(std::ranges::equal(batch.field("input").as<std::uint8_t>(), pixels));
  CHECK(std::ranges::equal(batch.target().as<std::int32_t>(), labels));
  CHECK_THROWS_AS(Hdf5Writer(folder / "no" / "made.h5", {}), InputError);
  CHECK_THROWS_AS(Hdf5Writer(folder / "other.h5", {{"input", Shape{1}, DType::float64}}), LogicError);
}
