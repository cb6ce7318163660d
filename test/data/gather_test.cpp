// What a device makes of a dataset that it keeps has the bits of Dataset::read. The kernel's arithmetic runs on the
// host.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/data/device_dataset.hpp>
#include <ronda/data/memory_dataset.hpp>
#include <ronda/data/mnist.hpp>

#include "support/catch.hpp"

using namespace ronda;

namespace {

void in_any_order(const gather::Rows& rows, Stream&) {
  for (std::int64_t i = rows.count(); i-- > 0;) rows(i);
}

bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.desc() == b.desc() && std::memcmp(a.data(), b.data(), a.desc().bytes()) == 0;
}

/// Reads these samples, of which so many are real, both ways.
void require_equal(const Dataset& data, const std::vector<std::uint64_t>& samples, std::size_t real) {
  const auto context = make_cpu_context(1);
  CpuStream stream;
  const DeviceDataset kept(data, *context, stream, in_any_order);
  Batch read(data.fields(), samples.size()), names = Batch::of_samples(data, samples.size());
  data.read({samples}, read);
  read.set_real(real);
  names.set_samples(samples, real);
  Batch made(data.fields(), samples.size());
  std::memset(made.input().data(), 0xff, made.input().desc().bytes());
  kept.gather(names.request().data(), made, stream);
  for (const auto& field : data.fields()) REQUIRE(same_bytes(made.field(field.name), read.field(field.name)));
  REQUIRE(same_bytes(made.weights(), read.weights()));
}

/// Every byte there is, as a pixel.
MnistDataset all_bytes() {
  IdxArray images{Shape{3, 16, 16}, Buffer::host(768)}, labels{Shape{3}, Buffer::host(3)};
  std::iota(images.values().begin(), images.values().end(), std::uint8_t{0});
  std::ranges::copy(std::array<std::uint8_t, 3>{7, 0, 9}, labels.values().begin());
  return {std::move(images), labels, "test"};
}

}  // namespace

TEST_CASE("a pixel is the float nearest to it over 255") {
  for (int pixel = 0; pixel < 256; ++pixel)
    REQUIRE(unit_of(static_cast<std::uint8_t>(pixel)) == static_cast<float>(pixel) / 255.0F);
}

TEST_CASE("a batch made of kept images has the bits of one that was read") {
  const MnistDataset data = all_bytes();
  require_equal(data, {2, 0, 1, 1}, 3);
  require_equal(data, {0}, 0);
  REQUIRE(DeviceDataset::bytes_of(data) == 768 + Buffer::alignment);  // bytes as in the file
}

TEST_CASE("a batch made of kept columns of any type and size has the bits of one that was read") {
  std::vector<float> inputs(5 * 6);
  std::iota(inputs.begin(), inputs.end(), 0.1F);
  std::vector<Column> columns;
  columns.push_back({"input", Shape{2, 3}, inputs});
  columns.push_back({"target", Shape{}, std::vector<std::int32_t>{5, -1, 3, 2, 1}});
  columns.push_back({"age", Shape{1}, std::vector<double>{0.5, 1.5, -2, 3, 1e300}});
  columns.push_back(
      {"odd", Shape{3}, std::vector<std::uint8_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 250, 251, 252, 253, 254}});
  columns.push_back({"even", Shape{4}, std::vector<std::uint8_t>(20, 77)});
  const MemoryDataset data(columns);
  require_equal(data, {4, 4, 0, 2, 3, 1, 1}, 5);
  require_equal(data, {1, 0}, 2);
}

TEST_CASE("a dataset that does not say how it is stored has no place on a device") {
  class Unknown final : public Dataset {
   public:
    [[nodiscard]] std::size_t size() const override { return 3; }
    [[nodiscard]] std::span<const Field> fields() const override { return data_.fields(); }
    void read(const SampleRequest& request, Batch& batch) const override { data_.read(request, batch); }
    [[nodiscard]] std::uint64_t fingerprint() const override { return 0; }

   private:
    MnistDataset data_ = all_bytes();
  };
  const Unknown data;
  REQUIRE(DeviceDataset::bytes_of(data) == 0);
  const auto context = make_cpu_context(1);
  CpuStream stream;
  REQUIRE_THROWS_AS(DeviceDataset(data, *context, stream, in_any_order), LogicError);
}

TEST_CASE("a batch that names samples has no values to copy, and names as many as it has rows") {
  const MnistDataset data = all_bytes();
  Batch names = Batch::of_samples(data, 2), values(data.fields(), 2);
  REQUIRE_THROWS_AS(values.copy_from(names), LogicError);
  REQUIRE_THROWS_AS(names.set_samples(std::vector<std::uint64_t>{1}, 1), LogicError);
  REQUIRE_THROWS_AS(values.set_samples(std::vector<std::uint64_t>{1, 2}, 1), LogicError);
}
