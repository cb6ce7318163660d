#include <numeric>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/core/state.hpp>

#include "support/catch.hpp"

using namespace ronda;

namespace {

std::vector<float> counting(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0F);
  return values;
}

}  // namespace

TEST_CASE("a parameter's file is row-major whatever its layout, and comes back as it was") {
  for (const char* tag : {"plain", "ba", "ab8b", "ba16a"}) {
    const TensorDesc desc{Shape{3, 10}, DType::float32, Layout::parse(tag)};
    std::vector<float> memory(static_cast<std::size_t>(desc.padded_count()));
    const Tensor stored(desc, memory.data());
    const Parameter parameter{{}, "dense1.weight", stored, {}, {}, {}};
    from_file(parameter, counting(30), stored);
    REQUIRE(to_file(parameter, stored) == counting(30));
    const auto rows = desc.layout.offsets(desc.shape, 0), columns = desc.layout.offsets(desc.shape, 1);
    REQUIRE(memory[static_cast<std::size_t>(rows[2] + columns[3])] == 23);
  }
}

TEST_CASE("a flattened weight has its columns in C, H, W order in the file") {
  constexpr std::size_t height = 2, width = 3, channels = 4, columns = height * width * channels;
  const TensorDesc desc{Shape{2, columns}, DType::float32, {}};
  for (const char* tag : {"plain", "cab", "cab4c"}) {  // the sample before the flatten: H, W, C; C, H, W; blocked
    std::vector<float> memory(2 * columns);
    const Tensor stored(desc, memory.data());
    Parameter parameter{{}, "dense1.weight", stored, {}, {}, {}};
    parameter.flattened = TensorDesc{Shape{height, width, channels}, DType::float32, Layout::parse(tag)};
    from_file(parameter, counting(2 * columns), stored);
    REQUIRE(to_file(parameter, stored) == counting(2 * columns));

    const auto& sample = *parameter.flattened;
    const auto h = sample.layout.offsets(sample.shape, 0), w = sample.layout.offsets(sample.shape, 1);
    const auto c = sample.layout.offsets(sample.shape, 2);
    const std::size_t in_file = 3 * height * width + 1 * width + 2;  // channel 3, row 1, column 2
    REQUIRE(memory[columns + static_cast<std::size_t>(h[1] + w[2] + c[3])] == static_cast<float>(columns + in_file));
  }
}

TEST_CASE("a parameter takes as many values as it has, no more and no fewer") {
  std::vector<float> memory(6);
  const Tensor stored({Shape{2, 3}, DType::float32, {}}, memory.data());
  const Parameter parameter{{}, "dense1.weight", stored, {}, {}, {}};
  REQUIRE_THROWS_AS(from_file(parameter, counting(5), stored), LogicError);
  REQUIRE_THROWS_AS(from_file(parameter, counting(7), stored), LogicError);
}
