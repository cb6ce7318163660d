// The arithmetic of the GPU's kernels, run on the host, is that of the plain loops.
#include "layers/comparison.hpp"
#include "support/catch.hpp"
#include "support/operations.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/core/number.hpp>
#include <ronda/core/random.hpp>
#include <ronda/layers/cudnn/geometry.hpp>
#include <ronda/layers/cudnn/patch_arithmetic.hpp>
#include <ronda/layers/elementwise.hpp>
#include <ronda/layers/primitives.hpp>
#include <ronda/core/buffer.hpp>
#include <ronda/layers/losses.hpp>

using namespace ronda;

namespace {

std::vector<float> numbers(std::int64_t count, std::uint64_t stream) {
  const RngKey key(11, Purpose::test, stream);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 2 * key.uniform(i) - 1;
  return values;
}
std::vector<float> nothing(std::int64_t count) {
  return std::vector<float>(static_cast<std::size_t>(count), std::numeric_limits<float>::quiet_NaN());
}

template <class Body>
void for_each(std::int64_t count, const Body& body) {
  for (std::int64_t i = count; i-- > 0;) body(i);  // in any order
}

/// An operation of the plain loops on these numbers.
struct Plain {
  Plain(Operation& operation, const TensorDesc& input, std::vector<float>& x, std::vector<float>& dy)
      : y(nothing(operation.plan().output.count())), dx(nothing(input.count())) {
    CpuStream stream;
    const Pass pass{.stream = stream, .on_ready = {}};
    const Tensor given(input, x.data());
    operation.bind(
        {.output = Tensor(operation.plan().output, y.data()), .input_gradients = {Tensor(input, dx.data())}});
    operation.forward({&given, 1}, pass);
    operation.backward({&given, 1}, Tensor(operation.plan().output, dy.data()), pass);
  }
  std::vector<float> y, dx;
};

}  // namespace

TEST_CASE("pooling on a GPU computes what the plain loops compute, to the bit") {
  const auto reference = make_reference_primitives();
  FirstPicker picker;
  for (const PoolKind kind : {PoolKind::maximum, PoolKind::average})
    for (const PoolSpec& spec : {PoolSpec{kind, 2, 2, 0},
                                 {kind, 3, 2, 1},
                                 {kind, 3, 1, 1},
                                 {kind, 2, 3, 0},
                                 {kind, 5, 2, 2},
                                 {kind, {1, 4}, {2, 3}, {0, 2}},
                                 {kind, {9, 7}, 1, 0}}) {
      const TensorDesc input{{2, 9, 7, 3}, DType::float32, {}};
      const auto operation = test::make_pool(*reference, input, spec, {picker});
      const Shape out = operation->plan().output.shape;
      auto x = numbers(input.count(), 1), dy = numbers(out.count(), 2);
      for (std::size_t i = 0; i < x.size(); i += 4) x[i] = 0.5F;  // ties: the first wins
      const Plain expected(*operation, input, x, dy);
      auto y = nothing(out.count()), dx = nothing(input.count());
      const cudnn::PoolGeometry geometry = cudnn::geometry(input.shape, spec);
      for_each(out.count(), cudnn::Pool<float>{geometry, x.data(), y.data()});
      for_each(input.count(), cudnn::PoolGradient<float>{geometry, x.data(), dy.data(), dx.data(), false});
      INFO("kernel " << spec.kernel.text() << " stride " << spec.stride.text() << " padding " << spec.padding.text());
      CHECK(y == expected.y);
      CHECK(dx == expected.dx);
      for_each(input.count(), cudnn::PoolGradient<float>{geometry, x.data(), dy.data(), dx.data(), true});
      std::vector<float> masked = expected.dx;
      for (std::size_t i = 0; i < x.size(); ++i)
        if (!(x[i] > 0)) masked[i] = 0;
      CHECK(dx == masked);
    }
}

namespace {

/// (rows, columns) · (columns, outputs), the second as it lies or transposed.
std::vector<float> product(const std::vector<float>& left, const std::vector<float>& right, std::size_t columns,
                           std::size_t outputs, bool transposed) {
  std::vector<float> result(left.size() / columns * outputs);
  for (std::size_t i = 0; i < result.size(); ++i)
    for (std::size_t k = 0; k < columns; ++k)
      result[i] +=
          left[i / outputs * columns + k] * right[transposed ? i % outputs * columns + k : k * outputs + i % outputs];
  return result;
}

template <int width>
std::vector<cudnn::Run<float, width>> runs_of(const std::vector<float>& numbers) {
  std::vector<cudnn::Run<float, width>> runs(numbers.size() / width);
  std::memcpy(runs.data(), numbers.data(), numbers.size() * sizeof(float));
  return runs;
}
template <class Run>
std::vector<float> numbers_of(const std::vector<Run>& runs) {
  std::vector<float> numbers(runs.size() * sizeof(Run) / sizeof(float));
  std::memcpy(numbers.data(), runs.data(), numbers.size() * sizeof(float));
  return numbers;
}

/// What a kernel that moves runs makes of these numbers: so many others.
template <template <int> class Kernel, int width>
std::vector<float> moved(cudnn::PatchGeometry geometry, const std::vector<float>& numbers, std::int64_t count) {
  geometry.channels /= width;
  const auto from = runs_of<width>(numbers);
  auto to = runs_of<width>(nothing(count));
  for_each(count / width, Kernel<width>{geometry, from.data(), to.data()});
  return numbers_of(to);
}

/// Any NaN is one, and -0 is 0.
std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<std::uint32_t> all;
  for (const float value : values)
    all.push_back(std::isnan(value) ? 0x7fc00000U : std::bit_cast<std::uint32_t>(value + 0.0F));
  return all;
}

}  // namespace

TEST_CASE("patches and products on a GPU are the plain convolution, by numbers and by runs of four") {
  const auto reference = make_reference_primitives();
  FirstPicker picker;
  for (const std::int64_t channels : {3, 8})
    for (const ConvolutionSpec& spec :
         {ConvolutionSpec{.outputs = 5, .bias = false},
          {.outputs = 5, .padding = 1, .bias = false},
          {.outputs = 5, .kernel = {1, 4}, .stride = {2, 3}, .padding = {0, 2}, .bias = false},
          {.outputs = 5, .kernel = 3, .padding = {2, 1}, .bias = false, .dilation = {2, 3}},
          {.outputs = 5, .kernel = {2, 4}, .padding = {0, 1}, .bias = false, .trailing = 1},
          {.outputs = 5, .kernel = 1, .stride = 4, .bias = false},
          {.outputs = 5, .kernel = {9, 8}, .bias = false}}) {
      const ConvolutionProblem problem{spec, {{2, 9, 8, channels}, DType::float32, {}}};
      const auto operation = test::make_convolution(*reference, problem, {picker});
      const TensorDesc weight = operation->plan().parameters[0], output = operation->plan().output;
      auto x = numbers(problem.input.count(), 1), dy = numbers(output.count(), 2), w = numbers(weight.count(), 3);
      std::vector<float> y = nothing(output.count()), dx = nothing(problem.input.count()), dw = nothing(weight.count());
      Parameter parameter{ParameterId{0}, "w", Tensor(weight, w.data()), Tensor(weight, dw.data()), {}, {}};
      const Tensor given(problem.input, x.data());
      CpuStream stream;
      const Pass pass{.stream = stream, .on_ready = {}};
      operation->bind({.output = Tensor(output, y.data()),
                       .input_gradients = {Tensor(problem.input, dx.data())},
                       .parameters = {&parameter}});
      operation->forward({&given, 1}, pass);
      operation->backward({&given, 1}, Tensor(output, dy.data()), pass);

      const cudnn::PatchGeometry geometry(problem);
      const std::int64_t patch = geometry.runs_a_patch(), rows = 2 * geometry.rows_an_image();
      const auto columns = static_cast<std::size_t>(patch);
      std::vector<float> stored(w.size());  // out, kernel, kernel, in
      reorder(Tensor(weight, w.data()),
              Tensor({weight.shape, DType::float32, Layout(std::array{0, 2, 3, 1}, {})}, stored.data()));
      const auto patches = moved<cudnn::Patches, 1>(geometry, x, rows * patch);
      const auto gradients = product(dy, stored, 5, columns, false);
      const auto sums = moved<cudnn::PatchSums, 1>(geometry, gradients, problem.input.count());
      std::vector<float> turned(dy.size());  // (outputs, rows)
      for (std::size_t i = 0; i < dy.size(); ++i) turned[i % 5 * (dy.size() / 5) + i / 5] = dy[i];
      INFO(channels << " channels, " << text_of_windows(spec));
      test::check_close("output", product(patches, stored, columns, 5, true), y,
                        2e-6F);  // a product is summed in float32
      test::check_close("input gradient", sums, dx, 1e-6F);
      std::vector<float> found(w.size());
      auto by_patches = product(turned, patches, dy.size() / 5, columns, false);
      reorder(Tensor({weight.shape, DType::float32, Layout(std::array{0, 2, 3, 1}, {})}, by_patches.data()),
              Tensor(weight, found.data()));
      test::check_close("weight gradient", found, dw, 1e-6F);
      if (channels % 4 != 0) continue;
      CHECK(moved<cudnn::Patches, 4>(geometry, x, rows * patch) == patches);
      CHECK(moved<cudnn::PatchSums, 4>(geometry, gradients, problem.input.count()) == sums);
    }
}

TEST_CASE("pooling by runs of four and by cells on a GPU gives the numbers of that by numbers, with NaN and ties") {
  for (const PoolKind kind : {PoolKind::maximum, PoolKind::average})
    for (const PoolSpec& spec :
         {PoolSpec{kind, 2, 2, 0}, {kind, 3, 2, 1}, {kind, 2, 3, 0}, {kind, {1, 4}, {2, 4}, 0}, {kind, {9, 7}, 9, 0}})
      for (const bool relu : {false, true}) {
        const Shape in{2, 9, 7, 8}, out = pool_output(in, spec);
        auto x = numbers(in.count(), 1), dy = numbers(out.count(), 2);
        for (std::size_t i = 0; i < x.size(); i += 5) x[i] = i % 3 == 0 ? std::nanf("") : 0.5F;
        const cudnn::PoolGeometry geometry = cudnn::geometry(in, spec);
        cudnn::PoolGeometry by_four = geometry;
        by_four.channels /= 4;
        auto y = nothing(out.count()), dx = nothing(in.count()), found = dx;
        auto four_y = runs_of<4>(y), four_dx = runs_of<4>(dx);
        const auto four_x = runs_of<4>(x), four_dy = runs_of<4>(dy);
        for_each(out.count(), cudnn::Pool<float>{geometry, x.data(), y.data(), relu});
        for_each(out.count() / 4, cudnn::Pool<float, 4>{by_four, four_x.data(), four_y.data(), relu});
        INFO("kernel " << spec.kernel.text() << " stride " << spec.stride.text() << " relu " << relu);
        CHECK(bits_of(numbers_of(four_y)) == bits_of(y));
        CHECK(cudnn::PoolCellGradient<float>::suits(geometry) == (spec.padding == 0));
        if (spec.padding != 0) continue;
        for_each(in.count(), cudnn::PoolGradient<float>{geometry, x.data(), dy.data(), dx.data(), relu});
        const auto cells = [&](std::int64_t channels) {
          return in[0] * cudnn::PoolCellGradient<float>::cells(geometry.vertical) *
                 cudnn::PoolCellGradient<float>::cells(geometry.horizontal) * channels;
        };
        for_each(cells(8), cudnn::PoolCellGradient<float>{geometry, x.data(), dy.data(), found.data(), relu});
        CHECK(bits_of(found) == bits_of(dx));
        for_each(cells(2),
                 cudnn::PoolCellGradient<float, 4>{by_four, four_x.data(), four_dy.data(), four_dx.data(), relu});
        CHECK(bits_of(numbers_of(four_dx)) == bits_of(dx));
      }
}

TEST_CASE("functions of each element on a GPU compute what the plain loops compute, to the bit") {
  const auto reference = make_reference_primitives();
  FirstPicker picker;
  const TensorDesc input{{5, 6}, DType::float32, {}};
  for (const ElementwiseFunction function : test::every_function)
    elementwise::with_row(function, [&]<class Row>(std::type_identity<Row>) {
      const auto operation = test::make_elementwise(*reference, function, input, {picker});
      auto x = numbers(input.count(), 3), dy = numbers(input.count(), 4);
      const Plain expected(*operation, input, x, dy);
      auto y = nothing(input.count()), dx = nothing(input.count());
      for_each(input.count(), cudnn::Elementwise<Row, float>{x.data(), y.data()});
      const float* kept = Row::backward_reads_input ? x.data() : y.data();
      for_each(input.count(), cudnn::ElementwiseGradient<Row, float>{kept, dy.data(), dx.data()});
      INFO(Row::name);
      CHECK(y == expected.y);
      CHECK(dx == expected.dx);
    });
}

TEST_CASE("sums and concatenations on a GPU compute what they say, in place and with NaN") {
  auto a = numbers(24, 3);
  const auto b = numbers(24, 4);
  a[5] = std::nanf("");
  for (const bool relu : {false, true}) {
    auto y = a;
    for_each(24, cudnn::Add<float>{y.data(), b.data(), y.data(), relu});
    for (std::size_t i = 0; i < y.size(); ++i) {
      const float sum = a[i] + b[i], expected = relu && sum <= 0 ? 0 : sum;
      CHECK((i == 5 ? std::isnan(y[i]) : y[i] == expected));
    }
  }
  auto joined = nothing(4 * 9), back = nothing(4 * 6);  // 6 columns and 3 in rows of 9
  for_each(24, cudnn::CopyColumns<float>{b.data(), joined.data(), 6, 6, 9});
  for_each(12, cudnn::CopyColumns<float>{b.data() + 12, joined.data() + 6, 3, 3, 9});
  for (std::size_t row = 0; row < 4; ++row)
    for (std::size_t column = 0; column < 9; ++column)
      CHECK(joined[row * 9 + column] == (column < 6 ? b[row * 6 + column] : b[12 + row * 3 + column - 6]));
  for_each(24, cudnn::CopyColumns<float>{joined.data(), back.data(), 6, 9, 6});
  CHECK(back == b);
}

TEST_CASE("ReLU and bias on a GPU compute what the plain loops compute, to the bit") {
  const auto reference = make_reference_primitives();
  FirstPicker picker;
  const TensorDesc input{{5, 6}, DType::float32, {}};
  const auto operation = test::make_relu(*reference, input, {picker});
  auto x = numbers(input.count(), 3), dy = numbers(input.count(), 4);
  x[7] = 0;
  const Plain expected(*operation, input, x, dy);
  auto y = nothing(input.count()), dx = nothing(input.count());
  for_each(input.count(), cudnn::Elementwise<elementwise::Relu, float>{x.data(), y.data()});
  for_each(input.count(), cudnn::ReluGradient<float>{y.data(), dy.data(), dx.data()});
  CHECK(y == expected.y);
  CHECK(dx == expected.dx);

  const auto bias = numbers(6, 5);
  for (const bool relu : {false, true}) {
    y = x;
    for_each(input.count(), cudnn::AddBias<float>{y.data(), bias.data(), 6, relu});
    for (std::size_t i = 0; i < y.size(); ++i) {
      const float sum = x[i] + bias[i % 6];
      CHECK(y[i] == (relu && !(sum > 0) ? 0.0F : sum));
    }
  }
  y = x;
  for_each(input.count(), cudnn::AddBias<float>{y.data(), nullptr, 6, true});
  CHECK(y == expected.y);
}

TEST_CASE("ReLU, bias and pooling on a GPU keep NaN, as the plain loops do") {
  const auto reference = make_reference_primitives();
  FirstPicker picker;
  const float nan = std::nanf("");
  const std::vector<float> x{nan, -1, 0, 2}, dy{1, 2, 3, 4};
  std::vector<float> y(4), dx(4);
  for_each(4, cudnn::Elementwise<elementwise::Relu, float>{x.data(), y.data()});
  CHECK((std::isnan(y[0]) && y[1] == 0 && y[2] == 0 && y[3] == 2));
  for_each(4, cudnn::ReluGradient<float>{y.data(), dy.data(), dx.data()});
  CHECK(dx == std::vector<float>{1, 0, 0, 4});
  y = x;
  for_each(4, cudnn::AddBias<float>{y.data(), nullptr, 4, true});
  CHECK((std::isnan(y[0]) && y[1] == 0));

  const auto bits = [](const std::vector<float>& values) {
    std::vector<std::uint32_t> all;
    for (const float value : values)
      all.push_back(std::isnan(value) ? 0x7fc00000U : std::bit_cast<std::uint32_t>(value));
    return all;
  };
  for (const PoolKind kind : {PoolKind::maximum, PoolKind::average})
    for (const PoolSpec& spec :
         {PoolSpec{kind, 2, 2, 0}, {kind, 3, 2, 1}, {kind, 2, 1, 1}, {kind, {3, 2}, 2, {1, 0}}}) {
      const TensorDesc input{{2, 9, 7, 3}, DType::float32, {}};
      const auto relu = test::make_relu(*reference, input, {picker}),
                 pool = test::make_pool(*reference, input, spec, {picker});
      const Shape out = pool->plan().output.shape;
      auto before = numbers(input.count(), 1), gradient = numbers(out.count(), 2), unused = numbers(input.count(), 3);
      for (std::size_t i = 0; i < before.size(); i += 11) before[i] = nan;
      Plain rectified(*relu, input, before, unused);
      const Plain expected(*pool, input, rectified.y, gradient);
      auto found = nothing(out.count()), found_dx = nothing(input.count());
      const cudnn::PoolGeometry geometry = cudnn::geometry(input.shape, spec);
      for_each(out.count(), cudnn::Pool<float>{geometry, rectified.y.data(), found.data()});
      CHECK(bits(found) == bits(expected.y));
      for_each(out.count(), cudnn::Pool<float>{geometry, before.data(), found.data(), true});  // with the ReLU in it
      CHECK(bits(found) == bits(expected.y));
      for_each(input.count(),
               cudnn::PoolGradient<float>{geometry, before.data(), gradient.data(), found_dx.data(), true});
      for (std::size_t i = 0; i < before.size(); ++i) CHECK(found_dx[i] == (before[i] <= 0 ? 0.0F : expected.dx[i]));
    }
}

TEST_CASE("matrices one after another are transposed, and come back") {
  constexpr std::int64_t count = 3, rows = 4, columns = 7;
  const auto x = numbers(count * rows * columns, 9);
  auto y = nothing(count * rows * columns), back = y;
  for_each(count * rows * columns, cudnn::Transpose<float>{x.data(), y.data(), rows, columns});
  for (std::int64_t n = 0; n < count; ++n)
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < columns; ++c)
        CHECK(y[static_cast<std::size_t>((n * columns + c) * rows + r)] ==
              x[static_cast<std::size_t>((n * rows + r) * columns + c)]);
  for_each(count * rows * columns, cudnn::Transpose<float>{y.data(), back.data(), columns, rows});
  CHECK(back == x);
}

TEST_CASE("columns are summed in two goes, whatever their number") {
  for (const std::int64_t rows : {1, 15, 16, 100, 5000})
    for (const std::int64_t columns : {std::int64_t{1}, std::int64_t{3}, std::int64_t{64}, 100000 / rows}) {
      const auto x = numbers(rows * columns, 6);
      const std::int64_t chunks = cudnn::column_chunks(rows, columns);
      auto partial = nothing(chunks * columns), sums = nothing(columns);
      for_each(chunks * columns, cudnn::SumRows<float>{x.data(), partial.data(), rows, columns, chunks});
      const cudnn::SumChunks<float> last{partial.data(), sums.data(), chunks, columns};
      for_each(columns, [&](std::int64_t column) { last(cudnn::OneThread{}, column); });
      for (std::int64_t c = 0; c < columns; ++c) {
        double expected = 0;
        for (std::int64_t r = 0; r < rows; ++r) expected += x[static_cast<std::size_t>(r * columns + c)];
        // sums of at most `rows` numbers below 1 in float32, each rounding at most 2^-24 of a partial sum
        REQUIRE(std::abs(sums[static_cast<std::size_t>(c)] - expected) <= 1e-6 * static_cast<double>(rows));
      }
    }
}

TEST_CASE("softmax cross entropy on a GPU computes what the CPU's does") {
  constexpr std::int64_t rows = 9, classes = 13;
  auto x = numbers(rows * classes, 7);
  for (float& value : x) value *= 20;
  x[3] = x[4] = 30;  // a tie of the largest: the first counts
  for (std::int64_t c = 0; c < classes; ++c) x[static_cast<std::size_t>(7 * classes + c)] = std::nanf("");
  std::vector<std::int32_t> labels{3, 4, 0, 12, -7, 6, 7, -7, 9};  // -7 is ignored, and so is a NaN there
  auto weights = numbers(rows, 8);
  for (float& weight : weights) weight = std::abs(weight);
  weights[2] = 0;
  for (const auto& [smoothing, rows_of_sample] : {std::pair{0.0F, 1}, {0.1F, 1}, {0.1F, 3}}) {
    const TensorDesc desc{rows_of_sample == 1 ? Shape{rows, classes} : Shape{3, 3, classes}, DType::float32, {}};
    const auto reference = make_reference_primitives()->softmax_cross_entropy(desc, {smoothing, -7});
    const Buffer scratch = Buffer::host(reference->scratch_bytes());
    StepControl expected, found;
    auto gradient = nothing(rows * classes), expected_gradient = gradient;
    CpuStream stream;
    const Tensor weight_tensor{std::span(weights)};
    reference->run(
        Tensor(desc, x.data()), Tensor(std::span(labels)), Tensor(desc, expected_gradient.data()), scratch.data(),
        {.stream = stream, .weights = &weight_tensor, .loss_scale = 0.25F, .control = &expected, .on_ready = {}});
    std::vector<double> sums(3 * rows);
    const cudnn::SoftmaxRow<float> row{x.data(),  labels.data(), weights.data(), gradient.data(), sums.data(), classes,
                                       smoothing, 0.25F,         nullptr,        rows_of_sample,  -7};
    for (std::int64_t n = 0; n < rows; ++n) row(cudnn::OneThread{}, n);
    cudnn::SumLosses{sums.data(), rows, &found}(cudnn::OneThread{}, 0);
    CHECK(found.weight == Approx(expected.weight).epsilon(1e-12));
    CHECK(found.metric == Approx(expected.metric).epsilon(1e-12));
    CHECK(found.loss == Approx(expected.loss).epsilon(1e-6));  // float32 exponentials and logarithms
    for (std::size_t i = 0; i < gradient.size(); ++i) CHECK(gradient[i] == Approx(expected_gradient[i]).margin(1e-7));
  }
}

TEST_CASE("losses of many rows are summed by parts, each row once") {
  for (const std::int64_t rows : {1, 256, 257, 1000, 40000}) {
    std::vector<double> sums(static_cast<std::size_t>(3 * rows));
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = static_cast<double>(i);
    const std::int64_t parts = cudnn::loss_parts(rows);
    CHECK((parts == 1) == (rows <= 256));
    std::vector<double> of_parts(static_cast<std::size_t>(3 * parts));
    const cudnn::SumLossesOfParts body{sums.data(), of_parts.data(), rows, parts};
    for_each(parts, [&](std::int64_t part) { body(cudnn::OneThread{}, part); });
    StepControl found{};
    cudnn::SumLosses{of_parts.data(), parts, &found}(cudnn::OneThread{}, 0);
    const auto n = static_cast<double>(rows);  // whole numbers below 2^53: exact
    CHECK(found.loss == 3 * n * (n - 1) / 2);
    CHECK(found.weight == found.loss + n);
    CHECK(found.metric == found.loss + 2 * n);
  }
}

TEST_CASE("of outputs that are NaN none is the largest: nothing is right, on a GPU and on the CPU") {
  const float nan = std::nanf("");
  std::vector<float> x{nan, nan, nan, 1, nan, 2}, weights{1, 1};
  for (const int label : {0, 1, 2}) {
    std::vector<std::int32_t> labels{label, label};
    std::vector<float> gradient(6);
    std::vector<double> sums(6);
    const cudnn::SoftmaxRow<float> row{x.data(), labels.data(), weights.data(), gradient.data(), sums.data(),
                                       3,        0.0F,          1.0F,           nullptr};
    for (std::int64_t n = 0; n < 2; ++n) row(cudnn::OneThread{}, n);
    StepControl found;
    CpuStream stream;
    const Tensor weight_tensor{std::span(weights)};
    const TensorDesc desc{{2, 3}, DType::float32, {}};
    const auto reference = make_reference_primitives()->softmax_cross_entropy(desc, {});
    const Buffer scratch = Buffer::host(reference->scratch_bytes());
    reference->run(Tensor(desc, x.data()), Tensor(std::span(labels)), Tensor(desc, gradient.data()), scratch.data(),
                   {.stream = stream, .weights = &weight_tensor, .control = &found, .on_ready = {}});
    CHECK((sums[2] == 0 && sums[5] == 0 && found.metric == 0));
    CHECK((std::isnan(sums[0]) && std::isnan(sums[3]) && std::isnan(found.loss)));
  }
}

TEST_CASE("a label that is none makes a GPU's loss and gradient NaN, so that the step is not applied") {
  const std::vector<float> x{1, 2, 3}, weights{1};
  for (const std::int32_t label : {-1, 3}) {
    std::vector<float> gradient(3);
    std::vector<double> sums(3);
    cudnn::SoftmaxRow<float>{x.data(), &label, weights.data(), gradient.data(), sums.data(), 3, 0.0F, 1.0F, nullptr}(
        cudnn::OneThread{}, 0);
    CHECK(std::isnan(sums[0]));
    for (const float value : gradient) CHECK(std::isnan(value));
  }
}

namespace {

template <class T>
std::vector<T> rounded(const std::vector<float>& values) {
  std::vector<T> all;
  for (const float value : values) all.push_back(as_number<T>(value));
  return all;
}
template <class T>
std::vector<float> widened(const std::vector<T>& values) {
  std::vector<float> all;
  for (const T value : values) all.push_back(as_float(value));
  return all;
}

}  // namespace

TEMPLATE_TEST_CASE("in half types a GPU computes what it does in float32 of the same numbers, rounded", "", Float16,
                   BFloat16) {
  using T = TestType;
  const Shape in{2, 9, 7, 3};
  const auto count = static_cast<std::size_t>(in.count());
  const auto x = rounded<T>(numbers(in.count(), 1));
  const std::vector<float> wide_x = widened(x);
  const auto size = [](const auto& all) { return static_cast<std::int64_t>(all.size()); };
  const auto same = [](const std::vector<T>& found, const std::vector<float>& wide) {
    CHECK(found == rounded<T>(wide));
  };
  for (const PoolKind kind : {PoolKind::maximum, PoolKind::average}) {
    const cudnn::PoolGeometry geometry = cudnn::geometry(in, {kind, 3, 2, 1});
    const Shape out = pool_output(in, {kind, 3, 2, 1});
    const auto dy = rounded<T>(numbers(out.count(), 2));
    const auto wide_dy = widened(dy);
    std::vector<T> y(dy.size()), dx(count);
    std::vector<float> wide_y(dy.size()), wide_dx(count);
    for_each(size(y), cudnn::Pool<T>{geometry, x.data(), y.data()});
    for_each(size(y), cudnn::Pool<float>{geometry, wide_x.data(), wide_y.data()});
    for_each(size(x), cudnn::PoolGradient<T>{geometry, x.data(), dy.data(), dx.data(), true});
    for_each(size(x), cudnn::PoolGradient<float>{geometry, wide_x.data(), wide_dy.data(), wide_dx.data(), true});
    same(y, wide_y);
    same(dx, wide_dx);
  }
  const auto bias = rounded<T>(numbers(3, 5));
  const auto wide_bias = widened(bias);
  std::vector<T> y = x, dz(count);
  std::vector<float> wide_y = wide_x;
  for_each(size(y), cudnn::AddBias<T>{y.data(), bias.data(), 3, true});
  for_each(size(y), cudnn::AddBias<float>{wide_y.data(), wide_bias.data(), 3, true});
  same(y, wide_y);
  for_each(size(y), cudnn::ReluGradient<T>{y.data(), x.data(), dz.data()});
  for (std::size_t i = 0; i < count; ++i) CHECK(dz[i] == (as_float(y[i]) > 0 ? x[i] : T{}));
  for_each(size(x), cudnn::Elementwise<elementwise::Relu, T>{x.data(), y.data()});
  for (std::size_t i = 0; i < count; ++i) CHECK(y[i] == (wide_x[i] > 0 ? x[i] : T{}));
  for_each(size(x), cudnn::Convert<float, T>{wide_x.data(), y.data()});
  CHECK(y == x);
  for_each(size(x), cudnn::Convert<T, float>{x.data(), wide_y.data()});
  CHECK(wide_y == wide_x);

  const std::int64_t rows = size(x) / 3, chunks = cudnn::column_chunks(rows, 3);
  std::vector<float> partial(static_cast<std::size_t>(chunks * 3)), wide_sums(3);
  std::vector<T> sums(3);
  for_each(chunks * 3, cudnn::SumRows<T>{x.data(), partial.data(), rows, 3, chunks});
  for_each(3, [&](std::int64_t column) {
    cudnn::SumChunks<T>{partial.data(), sums.data(), chunks, 3}(cudnn::OneThread{}, column);
  });
  for_each(chunks * 3, cudnn::SumRows<float>{wide_x.data(), partial.data(), rows, 3, chunks});
  for_each(3, [&](std::int64_t column) {
    cudnn::SumChunks<float>{partial.data(), wide_sums.data(), chunks, 3}(cudnn::OneThread{}, column);
  });
  same(sums, wide_sums);
}

TEMPLATE_TEST_CASE("softmax and loss of half outputs are float32's; a second scale multiplies the gradient alone", "",
                   Float16, BFloat16) {
  using T = TestType;
  constexpr std::int64_t rows = 9, classes = 13;
  const auto x = rounded<T>(numbers(rows * classes, 7));
  const auto wide = widened(x), weights = widened(rounded<T>(numbers(rows, 8)));
  const std::vector<std::int32_t> labels{3, 4, 0, 12, 5, 6, 7, 8, 9};
  const float scale = 4096;
  std::vector<T> gradient(x.size());
  std::vector<float> wide_gradient(x.size());
  std::vector<double> losses(3 * rows), wide_losses(3 * rows);
  const cudnn::SoftmaxRow<T> row{x.data(), labels.data(), weights.data(), gradient.data(), losses.data(),
                                 classes,  0.1F,          0.25F,          &scale};
  const cudnn::SoftmaxRow<float> wide_row{
      wide.data(), labels.data(), weights.data(), wide_gradient.data(), wide_losses.data(), classes,
      0.1F,        0.25F * scale, nullptr};
  for (std::int64_t n = 0; n < rows; ++n) {
    row(cudnn::OneThread{}, n);
    wide_row(cudnn::OneThread{}, n);
  }
  CHECK(losses == wide_losses);
  CHECK(gradient == rounded<T>(wide_gradient));
}
