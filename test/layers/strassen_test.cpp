// Strassen's products against sums in double, of sides that fill neither tiles nor pieces of the depth; and the dense
// layers that take them.
#include "layers/bench.hpp"
#include "support/catch.hpp"
#include "support/operations.hpp"
#include "support/plain_model.hpp"
#include "support/sanitizer.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <ronda/core/buffer.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/layers/onednn/strassen.hpp>
#include <ronda/layers/primitives.hpp>

using namespace ronda;
using namespace ronda::test;
using onednn::Strassen;
using Steps = Strassen::Steps;

namespace {

struct Sides {
  std::int64_t rows, depth, columns;
};

/// A product's memory; c and scratch begin as NaN.
class ProductBench {
 public:
  ProductBench(const Sides& sides, bool a_by_rows, bool b_by_columns, Steps steps, int threads)
      : sides_(sides),
        a_strides_(a_by_rows ? Strassen::Strides{sides.depth, 1} : Strassen::Strides{1, sides.rows}),
        b_strides_(b_by_columns ? Strassen::Strides{sides.depth, 1} : Strassen::Strides{1, sides.columns}),
        product_(sides.rows, sides.depth, sides.columns, a_strides_, b_strides_, steps, threads),
        a_(random_numbers(sides.rows * sides.depth, 1, 1)),
        b_(random_numbers(sides.columns * sides.depth, 2, 1)),
        bias_(random_numbers(sides.columns, 3, 1)),
        scratch_(Buffer::host(product_.scratch_bytes())) {
    std::fill_n(scratch_.data(), scratch_.bytes(), std::byte{0xff});
  }

  [[nodiscard]] std::vector<float> run(bool bias) const {
    std::vector<float> c(static_cast<std::size_t>(sides_.rows * sides_.columns) + 1, garbage);
    product_.run(a_.data(), b_.data(), bias ? bias_.data() : nullptr, c.data(), scratch_.data());
    REQUIRE(std::isnan(c.back()));  // it writes nothing beyond c
    c.pop_back();
    return c;
  }
  /// By sums in double.
  [[nodiscard]] std::vector<float> expected(bool bias) const {
    std::vector<float> c;
    for (std::int64_t row = 0; row < sides_.rows; ++row)
      for (std::int64_t column = 0; column < sides_.columns; ++column) {
        double sum = bias ? bias_[static_cast<std::size_t>(column)] : 0;
        for (std::int64_t k = 0; k < sides_.depth; ++k)
          sum += static_cast<double>(at(a_, a_strides_, row, k)) * at(b_, b_strides_, column, k);
        c.push_back(static_cast<float>(sum));
      }
    return c;
  }
  void set_a(std::int64_t row, std::int64_t k, float number) {
    a_[static_cast<std::size_t>(row * a_strides_.line + k * a_strides_.step)] = number;
  }
  void set_b(std::int64_t column, std::int64_t k, float number) {
    b_[static_cast<std::size_t>(column * b_strides_.line + k * b_strides_.step)] = number;
  }
  void scale(float of_a, float of_b) {
    for (float& number : a_) number *= of_a;
    for (float& number : b_) number *= of_b;
  }
  void make_whole() {
    for (auto* numbers : {&a_, &b_, &bias_})
      for (float& number : *numbers) number = std::round(4 * number);
  }

 private:
  static float at(const std::vector<float>& numbers, const Strassen::Strides& strides, std::int64_t line,
                  std::int64_t step) {
    return numbers[static_cast<std::size_t>(line * strides.line + step * strides.step)];
  }

  Sides sides_;
  Strassen::Strides a_strides_, b_strides_;
  Strassen product_;
  std::vector<float> a_, b_, bias_;
  Buffer scratch_;
};

bool has_strassen() {
  if (Strassen::suit_processor()) return true;
  WARN("this processor has no AVX-512: nothing to see");
  return false;
}

constexpr Steps all_steps[] = {Steps::single, Steps::paired};

constexpr float infinity = std::numeric_limits<float>::infinity();

constexpr Sides odd_sides[] = {{1, 1, 1},      {24, 2, 64},    {23, 3, 63},   {25, 7, 65},
                               {11, 130, 31},  {13, 511, 33},  {48, 512, 64}, {101, 513, 37},
                               {30, 1027, 70}, {150, 64, 129}, {48, 16, 128}, {97, 40, 257}};

/// Takes Strassen's products wherever they are offered.
class StrassenPicker final : public Picker {
 public:
  explicit StrassenPicker(std::string name) : name_(std::move(name)) {}
  std::size_t pick(std::string_view question, std::span<const Candidate> candidates) override {
    for (std::size_t i = 0; i < candidates.size(); ++i)
      if (candidates[i].name == name_) {
        candidates[i].run();  // as a timing would
        return i;
      }
    return FirstPicker().pick(question, candidates);
  }

 private:
  std::string name_;
};

}  // namespace

TEST_CASE("Strassen's products equal sums in double, in every order of the factors") {
  if (!has_strassen()) return;
  constexpr float most = 4e-6F;  // of the largest; 2.3e-6 were seen where a plain sum has 0.8e-6
  for (const Sides& sides : odd_sides)
    for (const bool a_by_rows : {true, false})
      for (const bool b_by_columns : {true, false}) {
        INFO(sides.rows << " x " << sides.depth << " x " << sides.columns << ", " << a_by_rows << b_by_columns);
        for (const Steps steps : all_steps) {
          const ProductBench bench(sides, a_by_rows, b_by_columns, steps, 1);
          for (const bool bias : {true, false}) check_close("c", bench.run(bias), bench.expected(bias), most);
        }
      }
}

TEST_CASE("Strassen's products of small whole numbers are exact") {
  if (!has_strassen()) return;
  for (const Sides& sides : odd_sides)
    for (const bool a_by_rows : {true, false})
      for (const bool b_by_columns : {true, false}) {
        INFO(sides.rows << " x " << sides.depth << " x " << sides.columns << ", " << a_by_rows << b_by_columns);
        for (const Steps steps : all_steps) {
          ProductBench bench(sides, a_by_rows, b_by_columns, steps, 1);
          bench.make_whole();
          CHECK(bench.run(true) == bench.expected(true));
        }
      }
}

TEST_CASE("Strassen's products of factors of very different sizes are as exact as others") {
  if (!has_strassen()) return;
  constexpr Sides sides{101, 513, 150};
  for (const auto& [of_a, of_b] : {std::pair{1e-7F, 1e3F}, std::pair{1e30F, 1e-30F}, std::pair{1e-25F, 1.0F}})
    for (const Steps steps : all_steps) {
      INFO(of_a << " and " << of_b);
      ProductBench bench(sides, true, false, steps, 1);
      bench.scale(of_a, of_b);
      check_close("c", bench.run(false), bench.expected(false), 4e-6F);
    }
}

TEST_CASE("Strassen's products of factors that are not balanced are as exact as others") {
  if (!has_strassen()) return;
  static constexpr Sides sides{101, 513, 150};
  const auto check = [&](const char* what, const auto& change) {
    for (const Steps steps : all_steps)
      for (const bool a_by_rows : {true, false}) {
        INFO(what << ", a by rows " << a_by_rows);
        ProductBench bench(sides, a_by_rows, false, steps, 1);
        change(bench);
        check_close("c", bench.run(false), bench.expected(false), 4e-6F, 0);
      }
  };
  const auto keep = [](auto&& wanted) {
    return [wanted](ProductBench& bench) {
      for (std::int64_t row = 0; row < sides.rows; ++row)
        for (std::int64_t k = 0; k < sides.depth; ++k)
          if (!wanted(row, k)) bench.set_a(row, k, 0);
    };
  };
  check("one row of each strip", keep([](std::int64_t row, std::int64_t) { return row % 48 == 5; }));
  check("two steps", keep([](std::int64_t, std::int64_t k) { return k == 6 || k == 7; }));
  check("large numbers in two steps", [](ProductBench& bench) {
    for (std::int64_t row = 0; row < sides.rows; ++row)
      for (const std::int64_t k : {6, 7}) bench.set_a(row, k, 1000);
  });
  for (const float number : {8.0F, 14.0F})  // 15 times the mean, just balanced, and 25 times
    check("two steps of larger numbers", [number](ProductBench& bench) {
      for (std::int64_t row = 0; row < sides.rows; ++row)
        for (const std::int64_t k : {6, 7}) bench.set_a(row, k, number);
    });
  check("a large row", [](ProductBench& bench) {
    for (std::int64_t k = 0; k < sides.depth; ++k) bench.set_a(50, k, k % 2 == 0 ? 700.0F : -900.0F);
  });
  check("sums that overflow", [](ProductBench& bench) { bench.scale(1e35F, 1e-35F); });
  check("one sum that overflows", [](ProductBench& bench) { bench.scale(3e34F, 1); });
  check("zeros and a sum that overflows", [](ProductBench& bench) { bench.scale(0, 1e35F); });
  check("numbers near the smallest", [](ProductBench& bench) { bench.scale(1e-18F, 1e-12F); });
}

TEST_CASE("Strassen's products of few whole numbers among zeros are exact") {
  if (!has_strassen()) return;
  constexpr Sides sides{101, 513, 150};
  for (const Steps steps : all_steps) {
    ProductBench bench(sides, true, true, steps, 1);
    bench.make_whole();
    for (std::int64_t row = 0; row < sides.rows; ++row)
      for (std::int64_t k = 0; k < sides.depth; ++k) bench.set_a(row, k, row % 48 == 5 && (k == 6 || k == 7) ? 1 : 0);
    CHECK(bench.run(true) == bench.expected(true));
  }
}

TEST_CASE("columns of zeros, which have no size, beside a NaN make zeros in Strassen's other strips") {
  if (!has_strassen()) return;
  constexpr Sides sides{100, 70, 260};
  for (const Steps steps : all_steps) {
    ProductBench bench(sides, true, false, steps, 1);
    bench.scale(1, 0);
    bench.set_a(50, 3, garbage);
    const auto c = bench.run(false);
    CHECK(std::all_of(c.begin(), c.begin() + 48 * sides.columns, [](float x) { return x == 0; }));
    CHECK(std::isnan(c[static_cast<std::size_t>(50 * sides.columns)]));
  }
}

TEST_CASE(
    "a NaN or an infinity in a row of a Strassen's product makes all of c's row no numbers, and no other strip's") {
  if (!has_strassen()) return;
  constexpr Sides sides{100, 70, 130};
  for (const float number : {garbage, infinity})
    for (const std::int64_t row : {0, 13, 25, 47, 99})
      for (const std::int64_t k : {0, 20, 39, 69})
        for (const Steps steps : all_steps) {
          ProductBench bench(sides, true, false, steps, 1);
          bench.set_a(row, k, number);
          const auto c = bench.run(false);
          const auto finite = [](float x) { return std::isfinite(x); };
          const auto begin_of = [&](std::int64_t r) { return c.begin() + std::min(r, sides.rows) * sides.columns; };
          INFO(number << " at " << row << ", " << k);
          CHECK(std::none_of(begin_of(row), begin_of(row + 1), finite));
          CHECK(std::all_of(begin_of(0), begin_of(row / 48 * 48), finite));
          CHECK(std::all_of(begin_of((row / 48 + 1) * 48), c.end(), finite));
        }
}

TEST_CASE(
    "a NaN or an infinity in a column of a Strassen's product makes all of c's column no numbers, and no other "
    "panel's") {
  if (!has_strassen()) return;
  constexpr Sides sides{60, 70, 300};
  for (const float number : {garbage, infinity})
    for (const std::int64_t column : {0, 63, 127, 128, 299})
      for (const Steps steps : all_steps) {
        ProductBench bench(sides, true, false, steps, 1);
        bench.set_b(column, 20, number);
        const auto c = bench.run(false);
        INFO(number << " at " << column);
        for (std::size_t i = 0; i < c.size(); ++i) {
          const auto here = static_cast<std::int64_t>(i) % sides.columns;
          if (here == column) REQUIRE(!std::isfinite(c[i]));
          if (here / 128 != column / 128) REQUIRE(std::isfinite(c[i]));
        }
      }
}

TEST_CASE("the bits of Strassen's products do not depend on threads") {
  if (!has_strassen()) return;
  use_threads(3);
  for (const Sides& sides : {Sides{250, 600, 200}, Sides{100, 600, 500}})  // rows pass by, and columns
    for (const Steps steps : all_steps) {
      const ProductBench one(sides, true, true, steps, 1), three(sides, true, true, steps, 3);
      const auto expected = one.run(true);
      for (int round = 0; round < 2; ++round) CHECK(three.run(true) == expected);
    }
  use_threads(1);
}

TEST_CASE("a large dense layer by Strassen's products equals the plain loops, and takes none where it only predicts") {
  if (!has_strassen() || sanitized) return;  // the plain loops would take long
  const bool paired = GENERATE(false, true);
  const std::string name = paired ? "Strassen by pairs" : "Strassen";
  StrassenPicker picker(name);
  FirstPicker first;
  const auto plain = make_reference_primitives(), library = make_onednn_primitives(1);
  const TensorDesc input{Shape{777, 300}, DType::float32, {}};
  // One of the ReLU's inputs is within a rounding of 0.
  const DenseSpec spec{301, true, paired ? Activation::none : Activation::relu};
  const auto reference = make_dense(*plain, input, spec, {first}),
             operation = make_dense(*library, input, spec, {picker}),
             predicting = make_dense(*library, input, spec, {picker, Mode::evaluation});
  REQUIRE(operation->plan().picks ==
          "plain weights, forward " + name + ", backward weights " + name + ", backward data " + name);
  CHECK(predicting->plan().picks.find("Strassen") == std::string::npos);
  Bench expected(*reference, input), found(*operation, input);
  check_close("output", found.forward(), expected.forward(), 1e-5F);
  const auto gradients = found.backward(), plain_gradients = expected.backward();
  for (std::size_t i = 0; i < gradients.size(); ++i) check_close("gradient", gradients[i], plain_gradients[i], 1e-5F);

  // In a test within the training a sample that is no number reaches no other.
  const auto before = found.evaluate();
  std::fill_n(found.input().pointer<float>(), 300, garbage);
  const auto after = found.evaluate();
  CHECK(std::isnan(after[0]));
  CHECK(std::equal(before.begin() + 301, before.end(), after.begin() + 301));
}
