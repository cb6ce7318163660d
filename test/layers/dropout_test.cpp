// Dropout: the same elements on any number of ranks, in any layout, forward and backward.
#include "layers/bench.hpp"
#include "support/catch.hpp"
#include "support/plain_model.hpp"
#include "support/rounded_primitives.hpp"

#include <cmath>
#include <string>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/core/number.hpp>
#include <ronda/core/parallel.hpp>

using namespace ronda;
using namespace ronda::test;

namespace {

std::unique_ptr<Operation> make_dropout(Primitives& primitives, const TensorDesc& input, double p,
                                        const OperationContext& context) {
  return primitives.make(DropoutSpec{p}, {&input, 1}, context);
}

/// A model with ones as input: its outputs are the factors.
class Ones {
 public:
  Ones(const Layer& layer, const Shape& shape, Primitives& primitives)
      : model_(layer, shape, primitives, picker_), x_({shape, DType::float32, {}}, 1) {}
  std::vector<float> factors(std::uint64_t step = 1, std::uint64_t first_row = 0, Mode mode = Mode::training) {
    return floats_of(model_.program().forward({&x_.tensor, 1}, pass(step, first_row, mode)));
  }
  std::vector<float> gradient(std::uint64_t step) {
    for (float& element : model_.program().output_gradient().as<float>()) element = 1;
    model_.program().backward(pass(step, 0, Mode::training));
    return plain_copy(model_.program().input_gradient(0));
  }

 private:
  Pass pass(std::uint64_t step, std::uint64_t first_row, Mode mode) {
    Pass pass = model_.pass();
    pass.key = RngKey(3, Purpose::layer, step);
    pass.first_row = first_row;
    pass.mode = mode;
    return pass;
  }
  FirstPicker picker_;
  PlainModel model_;
  Owned x_;
};

}  // namespace

TEST_CASE("a dropout keeps each element with its probability, and the mean") {
  const auto library = make_onednn_primitives(1);
  const Shape shape{100, 1000};
  constexpr double count = 100 * 1000;
  for (const double p : {0.001, 0.1, 0.5, 0.9, 0.999}) {
    double dropped = 0, both = 0, sum = 0;
    const auto factors = Ones(Dropout(p), shape, *library).factors();
    for (std::size_t i = 0; i < factors.size(); ++i) {
      REQUIRE((factors[i] == 0 || factors[i] == Approx(1 / (1 - p)).epsilon(0x1p-16 / (1 - p))));  // p is rounded
      dropped += factors[i] == 0 ? 1 : 0;
      both += i > 0 && factors[i] == 0 && factors[i - 1] == 0 ? 1 : 0;
      sum += factors[i];
    }
    CHECK(std::abs(dropped / count - p) < 5 * std::sqrt(p * (1 - p) / count));  // five standard deviations
    CHECK(std::abs(both / count - p * p) < 5 * p / std::sqrt(count));           // neighbours know nothing of each other
    CHECK(sum / count == Approx(1).epsilon(5 * std::sqrt(p / (1 - p) / count)));
  }
  CHECK(build_graph(Sequential(Dense(2), Dropout(0)), {3, 5}).nodes.size() == 1);
  CHECK(Ones(Dropout(1), {3, 5}, *library).factors() == std::vector<float>(15, 0.0F));
  for (const double p : {-0.1, 1.1, std::nan("")}) CHECK_THROWS_AS(Dropout(p), InputError);
  for (const float factor : Ones(Dropout(1 - 1e-9), shape, *library).factors())
    REQUIRE((factor == 0 || factor == 0x1p16F));  // as with the nearest p below 1
  CHECK_THROWS_AS(build_graph(Dropout(), {5}), InputError);
}

TEST_CASE("what a dropout drops depends on the step, on its name and on a row's place in the global batch") {
  const auto library = make_onednn_primitives(1);
  for (const Shape& sample : {Shape{7}, Shape{64}, Shape{3, 5}, Shape{4, 3, 17}}) {
    const auto rows = [&](std::int64_t count) {
      std::vector<std::int64_t> extents{count};
      extents.insert(extents.end(), sample.begin(), sample.end());
      return Shape(extents);
    };
    Ones whole(Dropout(), rows(40), *library), part(Dropout(), rows(8), *library);
    const auto all = whole.factors(5);
    CHECK(whole.factors(5) == all);
    CHECK(whole.factors(6) != all);
    CHECK(whole.gradient(5) == all);
    for (std::uint64_t first = 0; first < 40; first += 8) {
      const auto own = part.factors(5, first);
      CHECK(std::equal(own.begin(), own.end(), all.begin() + static_cast<std::ptrdiff_t>(first) * sample.count()));
    }
    CHECK(whole.factors(5, 0, Mode::evaluation) == std::vector<float>(all.size(), 1.0F));
    const Dropout one;  // the same layer twice: 4 for a quarter of the elements, not for half
    const auto twice = Ones(Sequential(one, one), rows(40), *library).factors(5);
    CHECK(std::ranges::count(twice, 4.0F) < static_cast<std::ptrdiff_t>(all.size()) * 2 / 5);
  }
}

TEST_CASE("dropouts equal the plain loops in every layout, and keep NaN") {
  for (const double p : {0.3, 1.0}) {
    for (const Shape& shape : {Shape{1, 1}, Shape{3, 64}, Shape{5, 50}, Shape{2, 3, 6}, Shape{2, 200}}) {
      const TensorDesc input{shape, DType::float32, {}};
      compare("dropout " + shape.text(), input, [&](Primitives& primitives, const OperationContext& context) {
        return make_dropout(primitives, input, p, context);
      });
    }
    for (const char* layout : {"plain", "adbc16d", "adbc8d", "adbc"})
      for (const std::int64_t channels : {1, 3, 16, 17, 40}) {
        const TensorDesc input = image(3, 4, 5, channels, layout);
        compare("dropout " + input.text(), input, [&](Primitives& primitives, const OperationContext& context) {
          return make_dropout(primitives, input, p, context);
        });
      }
  }
  const auto library = make_onednn_primitives(1), plain = make_reference_primitives();
  FirstPicker picker;
  const TensorDesc input{{3, 40}, DType::float32, {}};
  for (Primitives* primitives : {library.get(), plain.get()}) {
    const auto operation = make_dropout(*primitives, input, 0.5, {picker});
    Bench bench(*operation, input);
    for (float& x : bench.input().as<float>()) x = garbage;
    for (const float y : bench.forward()) CHECK(std::isnan(y));
  }
}

TEST_CASE("a dropout behind a flatten drops the same features whatever order their bytes have, on any threads") {
  use_threads(3);
  const auto library = make_onednn_primitives(3), plain = make_reference_primitives();
  FirstPicker picker;
  const Sequential model(Conv2d(17, 3), Dropout(0.5), MaxPool2d(2), Flatten(), Dropout(0.25));
  const Shape shape{4, 8, 9, 3};
  PlainModel found(model, shape, *library, picker), expected(model, shape, *plain, picker);
  Owned x({shape, DType::float32, {}}, 0), dy(found.output(), 0);
  fill(x.tensor, 1);
  fill(dy.tensor, 2);
  const auto y = plain_copy(expected.forward(x.tensor));
  check_close("output", plain_copy(found.forward(x.tensor)), y, 1e-5F);
  check_close("gradient", plain_copy(found.backward(dy.tensor)), plain_copy(expected.backward(dy.tensor)), 1e-5F);
  CHECK(std::ranges::count(y, 0.0F) > static_cast<std::ptrdiff_t>(y.size()) / 5);
  use_threads(1);
}

TEST_CASE("a dropout of half types drops the same elements, and rounds what it keeps") {
  const Shape shape{6, 5, 19};
  const auto plain = make_reference_primitives();
  const auto exact = Ones(Dropout(0.3), shape, *plain).factors(4);
  for (const DType dtype : {DType::bfloat16, DType::float16}) {
    const auto half = make_rounded_primitives(dtype);
    const auto found = Ones(Dropout(0.3), shape, *half).factors(4);
    for (std::size_t i = 0; i < exact.size(); ++i) REQUIRE(found[i] == Approx(exact[i]).epsilon(0x1p-8));
  }
}

TEST_CASE("a model that only evaluates has no dropout") {
  const auto library = make_onednn_primitives(1);
  FirstPicker picker;
  const Program program(build_graph(Sequential(Dense(4), Dropout(), Dense(3)), {2, 5}), nullptr, *library, picker,
                        {.mode = Mode::evaluation});
  CHECK(program.lines().size() == 2);
}
