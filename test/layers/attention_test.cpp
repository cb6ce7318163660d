// What transformers are made of: attention, positions, dense layers on steps, tied weights.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/core/parallel.hpp>

#include "layers/bench.hpp"
#include "support/gradient_probe.hpp"
#include "support/plain_model.hpp"

using namespace ronda;
using namespace ronda::test;

namespace {

TensorDesc plain(const Shape& shape) { return {shape, DType::float32, {}}; }

std::unique_ptr<Operation> make_attention(Primitives& primitives, const TensorDesc& input, const AttentionSpec& spec,
                                          const OperationContext& context) {
  return primitives.make(spec, {&input, 1}, context);
}

struct AttentionCase {
  Shape packed;
  std::int64_t heads;
};
/// Steps and heads of one element; tiles, panels and blocks that are not full, and several of them.
const std::vector<AttentionCase> attention_cases{{{2, 1, 3}, 1},       {{1, 5, 6}, 2},   {{2, 7, 9 * 4}, 4},
                                                 {{1, 33, 3 * 16}, 1}, {{2, 70, 96}, 1}, {{1, 64, 102}, 2},
                                                 {{1, 300, 96}, 2}};

std::vector<float> sequence(std::int64_t count, float factor) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(std::sin(factor * static_cast<float>(i)));
  return values;
}

}  // namespace

TEST_CASE("the gradients of transformers' layers equal finite differences") {
  for (const bool causal : {false, true}) {
    for (const auto& [shape, heads] : {std::pair(Shape{2, 1, 4}, 1), std::pair(Shape{2, 5, 6}, 2)})
      check_against_differences("attention", MultiHeadAttention(heads, {.causal = causal}), shape);
    check_against_differences("attention without bias", MultiHeadAttention(3, {.causal = causal, .bias = false}),
                              Shape{1, 7, 9});
  }
  check_against_differences("attention with dropout", MultiHeadAttention(2, {.dropout = 0.4}), Shape{2, 5, 6});
  check_against_differences("positions", PositionalEmbedding(5), Shape{3, 4, 6});
  check_against_differences("dense on steps", Sequential(Dense(5), ReLU(), Dense(3, false)), Shape{2, 3, 4});
  check_against_differences(
      "a block", Residual(Sequential(LayerNorm(1, 1e-2F), MultiHeadAttention(2, {.causal = true}), Dense(6), GELU())),
      Shape{2, 4, 6});
}

TEST_CASE("attention equals the plain loops") {
  for (const auto& [packed, heads] : attention_cases)
    for (const bool causal : {false, true}) {
      const TensorDesc input = plain(packed);
      compare("attention " + packed.text() + (causal ? " causal" : ""), input,
              [&, heads = heads](Primitives& primitives, const OperationContext& context) {
                return make_attention(primitives, input, {.heads = heads, .causal = causal}, context);
              });
    }
}

TEST_CASE("an attention of one step has gradients of exactly 0 for its query and its key") {
  const auto reference = make_reference_primitives(), library = make_onednn_primitives(1);
  FirstPicker picker;
  for (const bool causal : {false, true})  // in causal attention the first step reads only itself
    for (Primitives* primitives : {reference.get(), library.get()}) {
      constexpr std::int64_t width = 48;
      const TensorDesc input = plain({3, causal ? 5 : 1, 3 * width});
      const auto operation = make_attention(*primitives, input, {.heads = 2, .causal = causal}, {picker});
      Bench bench(*operation, input);
      bench.forward();
      const auto dx = bench.backward()[0];
      for (std::size_t i = 0; i < width; ++i) REQUIRE(dx[i] == 0);  // the first step's query
      for (std::size_t i = width; i < 2 * width && !causal; ++i) REQUIRE(dx[i] == 0);
    }
}

TEST_CASE("an attention of large scores has the gradients of a sum in double") {
  const auto reference = make_reference_primitives(), library = make_onednn_primitives(1);
  FirstPicker picker;
  constexpr std::int64_t steps = 20, depth = 16;
  const TensorDesc input = plain({1, steps, 3 * depth});
  // Scores are whole numbers that are exact in float32, 4 · (large + small), and differ by little in each row.
  for (const float large : {1e1F, 1e3F, 65536.0F, 1048576.0F}) {
    std::vector<float> x(static_cast<std::size_t>(input.count()));
    const auto at = [&](std::int64_t step, std::int64_t part, std::int64_t i) -> float& {
      return x[static_cast<std::size_t>((step * 3 + part) * depth + i)];
    };
    for (std::int64_t step = 0; step < steps; ++step) {
      at(step, 0, 0) = 4;
      at(step, 0, 1) = static_cast<float>(1 + step % 3);
      at(step, 1, 0) = large;
      at(step, 1, 1) = static_cast<float>(step * 7 % 5);
      for (std::int64_t i = 0; i < depth; ++i) at(step, 2, i) = std::sin(static_cast<float>(step * depth + i));
    }
    const auto gradients_of = [&](Primitives& primitives) {
      const auto operation = make_attention(primitives, input, {.heads = 1}, {picker});
      Bench bench(*operation, input);
      std::ranges::copy(x, bench.input().pointer<float>());
      bench.forward();
      auto dx = bench.backward()[0];
      // The gradient of a query's first element is `large` times a sum that is 0 except for roundings.
      for (std::size_t step = 0; step < steps; ++step) dx[step * 3 * depth] = 0;
      return dx;
    };
    INFO("scores of " << large);
    check_close("gradients", gradients_of(*library), gradients_of(*reference), 1e-5F);
  }
  for (const float scale : {1e6F, 1e10F, 1e15F}) {  // one key has all of the probability
    const auto operation = make_attention(*library, input, {.heads = 2, .causal = true}, {picker});
    Bench bench(*operation, input);
    for (float& value : bench.input().as<float>()) value *= scale;
    bench.forward();
    const auto dx = bench.backward()[0];
    CHECK(std::ranges::all_of(dx, [](float gradient) { return std::isfinite(gradient); }));
  }
}

TEST_CASE("attention on three threads has the same bits as on one") {
  use_threads(3);
  const auto alone = make_onednn_primitives(1), several = make_onednn_primitives(3);
  FirstPicker picker;
  for (const auto& [packed, heads] : attention_cases) {
    const TensorDesc input = plain(packed);
    const AttentionSpec spec{.heads = heads, .causal = true};
    const auto one = make_attention(*alone, input, spec, {picker}),
               three = make_attention(*several, input, spec, {picker});
    Bench expected(*one, input), found(*three, input);
    CHECK(found.forward(3) == expected.forward());
    CHECK(found.backward(3) == expected.backward());
  }
  use_threads(1);
}

TEST_CASE("of a causal attention NaN and infinities reach the steps from their own on, and no others") {
  const auto reference = make_reference_primitives(), library = make_onednn_primitives(1);
  FirstPicker picker;
  constexpr std::int64_t steps = 40, width = 32, spoiled = 9;
  const TensorDesc input = plain({1, steps, 3 * width});
  const float infinity = std::numeric_limits<float>::infinity();
  for (const std::int64_t part : {0, 1, 2})  // a query, a key, a value
    for (const float bad : {garbage, infinity}) {
      std::vector<std::vector<bool>> finite;
      for (Primitives* primitives : {reference.get(), library.get()}) {
        const auto operation = make_attention(*primitives, input, {.heads = 2, .causal = true}, {picker});
        Bench bench(*operation, input);
        bench.input().as<float>()[static_cast<std::size_t>((3 * spoiled + part) * width + 2)] = bad;
        auto& found = finite.emplace_back();
        for (const float y : bench.forward()) found.push_back(std::isfinite(y));
      }
      CHECK(finite[0] == finite[1]);
      for (std::size_t i = 0; i < spoiled * width; ++i) REQUIRE(finite[1][i]);
      for (std::size_t i = spoiled * width; i < finite[1].size(); ++i)  // of the other head
        if (i % width >= width / 2) REQUIRE(finite[1][i]);
      CHECK(std::ranges::count(finite[1], false) > 0);
    }
}

namespace {

/// An attention of samples with lengths, or of a single one that is not padded.
struct Attended {
  std::vector<float> y, dx;
};
Attended attended(Primitives& primitives, const MultiHeadAttention& layer, const Shape& shape, std::span<const float> x,
                  std::span<const float> dy, std::vector<std::int32_t> lengths) {
  const std::vector<Field> fields{{"input", shape.without_batch(), DType::float32}, {"length", Shape{}, DType::int32}};
  FirstPicker picker;
  PlainModel model(build_graph(layer, fields, static_cast<std::size_t>(shape[0])), primitives, picker);
  std::vector<float> input(x.begin(), x.end()), gradient(dy.begin(), dy.end());
  std::vector<Tensor> inputs{Tensor(plain(shape), input.data())};
  if (!lengths.empty()) inputs.emplace_back(TensorDesc{Shape{shape[0]}, DType::int32, {}}, lengths.data());
  Attended result{.y = plain_copy(model.program().forward(inputs, model.pass())), .dx = {}};
  result.dx = plain_copy(model.backward(Tensor(plain(shape), gradient.data())));
  return result;
}

}  // namespace

TEST_CASE("padded samples attend as those that end where they do") {
  const auto reference = make_reference_primitives(), library = make_onednn_primitives(1);
  constexpr std::int64_t steps = 75, width = 32, each = steps * width;
  const std::vector<std::int32_t> lengths{75, 1, 40, 0, 64};
  const Shape shape{std::ssize(lengths), steps, width};
  std::vector<float> x = sequence(shape.count(), 0.7F), dy = sequence(shape.count(), 0.2F);
  for (std::size_t n = 0; n < lengths.size(); ++n)
    for (std::int64_t i = lengths[n] * width; i < each; ++i) {
      x[n * each + static_cast<std::size_t>(i)] = 1e3F;   // is not read
      dy[n * each + static_cast<std::size_t>(i)] = 0.0F;  // and has no gradient
    }
  for (const bool causal : {false, true}) {
    const MultiHeadAttention padded(2, {.causal = causal, .lengths = "length"}), whole(2, {.causal = causal});
    const Attended expected = attended(*reference, padded, shape, x, dy, lengths),
                   found = attended(*library, padded, shape, x, dy, lengths);
    check_close("outputs", found.y, expected.y, 1e-5F);
    check_close("gradients", found.dx, expected.dx, 1e-5F);
    for (std::size_t n = 0; n < lengths.size(); ++n) {
      const auto count = static_cast<std::size_t>(lengths[n] * width);
      for (std::size_t i = count; i < each; ++i) REQUIRE(found.dx[n * each + i] == 0);
      if (count == 0) continue;
      const Attended alone = attended(*library, whole, {1, lengths[n], width}, std::span(x).subspan(n * each, count),
                                      std::span(dy).subspan(n * each, count), {});
      const auto part = [&](const std::vector<float>& all) {
        return std::vector<float>(all.begin() + static_cast<std::ptrdiff_t>(n * each),
                                  all.begin() + static_cast<std::ptrdiff_t>(n * each + count));
      };
      check_close("outputs beside a sample alone", part(found.y), alone.y, 1e-5F);
      check_close("gradients beside a sample alone", part(found.dx), alone.dx, 1e-5F);
    }
    CHECK_THROWS_WITH(attended(*library, padded, shape, x, dy, {75, 1, 76, 0, 64}),
                      Contains("sample 2") && Contains("length 76") && Contains("0 to 75"));
    CHECK_THROWS_AS(attended(*reference, padded, shape, x, dy, {75, 1, -1, 0, 64}), InputError);
  }
  const Field only{"input", {4, 6}, DType::float32};
  CHECK_THROWS_AS(build_graph(MultiHeadAttention(2, {.lengths = "length"}), {&only, 1}, 3), InputError);
}

TEST_CASE(
    "an attention drops weights in training, the same by plain loops, on several threads and for a sample elsewhere") {
  use_threads(3);
  const auto reference = make_reference_primitives(), library = make_onednn_primitives(1),
             several = make_onednn_primitives(3);
  const Shape shape{3, 150, 4}, packed{3, 150, 12};  // more than a vector of draws
  const AttentionSpec spec{.heads = 2, .causal = true, .dropout = 0.3};
  FirstPicker picker;
  const TensorDesc input = plain(packed);
  compare("attention with dropout", input, [&](Primitives& primitives, const OperationContext& context) {
    return make_attention(primitives, input, spec, context);
  });
  const auto one = make_attention(*library, input, spec, {picker}),
             three = make_attention(*several, input, spec, {picker});
  Bench alone(*one, input), together(*three, input);
  CHECK(alone.forward() == together.forward(3));
  CHECK(alone.backward() == together.backward(3));
  use_threads(1);

  const auto outputs = [&](Primitives& primitives, const Shape& of, std::uint64_t first_row, Mode mode, double p) {
    PlainModel model(MultiHeadAttention(2, {.dropout = p}), of, primitives, picker);
    std::vector<float> x = sequence(shape.count(), 0.7F);
    const auto begin = static_cast<std::ptrdiff_t>(first_row) * shape.without_batch().count();
    Tensor given(plain(of), x.data() + begin);
    Pass pass = model.pass();
    pass.first_row = first_row;
    pass.mode = mode;
    return plain_copy(model.program().forward({&given, 1}, pass));
  };
  const auto all = outputs(*library, shape, 0, Mode::training, 0.3);
  const auto last = outputs(*library, {1, 150, 4}, 2, Mode::training, 0.3);
  // oneDNN's products of the packed inputs may add up in another order where a batch has other rows.
  check_close("for a sample elsewhere", last, {all.begin() + 2 * 600, all.end()}, 1e-5F);
  const auto tested = outputs(*library, shape, 0, Mode::evaluation, 0.3);
  CHECK(tested == outputs(*library, shape, 0, Mode::training, 0));
  CHECK(tested != all);
  check_close("in evaluation", tested, outputs(*reference, shape, 0, Mode::evaluation, 0.3), 1e-5F);
  CHECK_THROWS_WITH(outputs(*library, shape, 0, Mode::training, 1.5), Contains(".dropout"));
}

TEST_CASE("large scores overflow nowhere, and equal ones give the mean of the values") {
  const auto library = make_onednn_primitives(1);
  FirstPicker picker;
  const TensorDesc input = plain({1, 50, 3 * 4});
  const auto operation = make_attention(*library, input, {.heads = 1}, {picker});
  Bench bench(*operation, input);
  const auto x = bench.input().as<float>();
  for (const float size : {0.0F, 1e3F, 1e10F}) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::size_t step = i / 12;
      x[i] = i % 12 < 8 ? size : static_cast<float>(step);
    }
    for (const float y : bench.forward()) CHECK(y == Approx(24.5));
    for (const auto& gradient : bench.backward())
      for (const float element : gradient) CHECK(std::isfinite(element));
  }
}

TEST_CASE("multi-head attention has PyTorch's parameters and values") {
  struct Expected {
    bool causal;
    std::vector<float> y;
  };
  // torch.nn.MultiheadAttention(4, 2, batch_first=True) of sin(0.7 i), parameters sin(0.3 i), sin(0.5 i), sin(0.9 i)
  // and sin(1.1 i), with and without a mask of what lies behind.
  const std::vector<Expected> all{
      {false, {-1.551203F, 3.863832F, -2.971753F, 3.649570F, -1.922691F, 4.609210F, -3.937113F, 4.635582F,
               -1.481843F, 3.172132F, -1.800536F, 2.240675F, -3.126222F, 4.582095F, -2.684950F, 2.416924F,
               -2.586476F, 3.519174F, -1.318330F, 1.028787F, -1.880129F, 3.011023F, -1.113298F, 1.169211F}},
      {true, {-2.598054F, 5.763221F, -5.331489F, 5.982408F,  -2.009974F, 4.723538F, -4.054879F, 4.732470F,
              -1.481843F, 3.172132F, -1.800536F, 2.240675F,  -3.135936F, 3.374147F, -0.508762F, -0.278161F,
              -2.363095F, 2.754626F, -0.170479F, -0.265354F, -1.880129F, 3.011023F, -1.113298F, 1.169211F}}};
  const auto reference = make_reference_primitives(), library = make_onednn_primitives(1);
  FirstPicker picker;
  for (Primitives* primitives : {reference.get(), library.get()})
    for (const auto& [causal, expected] : all) {
      PlainModel model(MultiHeadAttention(2, {.causal = causal}), {2, 3, 4}, *primitives, picker);
      const std::vector<std::pair<std::string, Shape>> parameters{{"attention1.in_proj_weight", {12, 4}},
                                                                  {"attention1.in_proj_bias", {12}},
                                                                  {"attention1.out_proj.weight", {4, 4}},
                                                                  {"attention1.out_proj.bias", {4}}};
      const float factors[] = {0.3F, 0.5F, 0.9F, 1.1F};
      REQUIRE(model.parameters().size() == parameters.size());
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        const Parameter& parameter = model.parameters()[i];
        CHECK(parameter.name == parameters[i].first);
        REQUIRE(parameter.value.shape() == parameters[i].second);
        from_file(parameter, sequence(parameter.value.desc().count(), factors[i]), parameter.value);
      }
      std::vector<float> x = sequence(24, 0.7F);
      const auto y = model.forward(Tensor(plain({2, 3, 4}), x.data())).as<float>();
      REQUIRE(y.size() == expected.size());
      for (std::size_t i = 0; i < y.size(); ++i) CHECK(y[i] == Approx(expected[i]).margin(1e-5));
    }
}

TEST_CASE("a dense layer takes steps as rows, and copies none") {
  const auto library = make_onednn_primitives(1);
  FirstPicker picker;
  PlainModel steps(Dense(5), {3, 4, 6}, *library, picker), rows(Dense(5), {12, 6}, *library, picker);
  REQUIRE(steps.output().shape == Shape{3, 4, 5});
  CHECK(steps.parameters()[0].value.shape() == Shape{5, 6});
  CHECK(steps.program().costs().size() == 1);
  CHECK(steps.program().costs()[0].flops == rows.program().costs()[0].flops);
  std::vector<float> x = sequence(72, 0.7F);
  CHECK(std::ranges::equal(steps.forward(Tensor(plain({3, 4, 6}), x.data())).as<float>(),
                           rows.forward(Tensor(plain({12, 6}), x.data())).as<float>()));
  PlainModel behind(Sequential(Dense(6), ReLU(), Dense(2)), {3, 4, 6}, *library, picker);
  CHECK(behind.program().costs().size() == 2);  // the ReLU is part of the first
}

TEST_CASE("a dense layer with an embedding's table has its gradient and the embedding's added up") {
  const Field field{"input", {3}, DType::int32};
  const Embedding table(5, 4);
  const Sequential tied(table, Dense(table));
  const auto library = make_onednn_primitives(1);
  FirstPicker picker;
  HostProgram model(build_graph(tied, {&field, 1}, 2), *library, picker);
  REQUIRE(model.parameters().size() == 1);
  CHECK(model.parameters()[0].name == "embedding1.weight");
  CHECK_FALSE(Program(build_graph(tied, {&field, 1}, 2), nullptr, *library, picker).parameters()[0].sparse);
  fill(model.parameters()[0].value, 1);
  std::vector<std::int32_t> tokens{4, 0, 2, 2, 1, 4};
  const Tensor input(TensorDesc{Shape{2, 3}, DType::int32, {}}, tokens.data());
  CpuStream stream;
  StepControl control;
  const Pass pass{.stream = stream, .control = &control, .on_ready = {}};
  const auto w = plain_copy(model.parameters()[0].value);
  REQUIRE(model.program().output().shape == Shape{2, 3, 5});
  const auto y = plain_copy(model.program().forward({&input, 1}, pass));
  fill(model.program().output_gradient(), 2);
  const auto dy = plain_copy(model.program().output_gradient());
  model.program().backward(pass);
  const auto gradient = plain_copy(model.parameters()[0].gradient);
  std::vector<double> expected(20);
  for (std::size_t t = 0; t < 6; ++t)
    for (std::size_t o = 0; o < 5; ++o) {
      double sum = 0;
      for (std::size_t i = 0; i < 4; ++i) {
        const std::size_t row = static_cast<std::size_t>(tokens[t]) * 4 + i;
        sum += double{w[row]} * w[o * 4 + i];
        expected[o * 4 + i] += double{dy[t * 5 + o]} * w[row];
        expected[row] += double{dy[t * 5 + o]} * w[o * 4 + i];
      }
      CHECK(y[t * 5 + o] == Approx(sum).margin(1e-5));
    }
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(gradient[i] == Approx(expected[i]).margin(1e-5));
}

TEST_CASE("positions are added to each sample, and those behind the last step are left alone") {
  const auto library = make_onednn_primitives(1);
  FirstPicker picker;
  PlainModel model(PositionalEmbedding(5), {2, 3, 2}, *library, picker);
  CHECK(model.parameters()[0].name == "positional_embedding1.weight");
  REQUIRE(model.parameters()[0].value.shape() == Shape{5, 2});
  const auto weight = model.parameters()[0].value.as<float>(), gradient = model.parameters()[0].gradient.as<float>();
  std::vector<float> x = sequence(12, 0.7F), dy = sequence(12, 0.2F);
  const auto y = model.forward(Tensor(plain({2, 3, 2}), x.data())).as<float>();
  for (std::size_t i = 0; i < 12; ++i) CHECK(y[i] == x[i] + weight[i % 6]);
  const auto dx = model.backward(Tensor(plain({2, 3, 2}), dy.data())).as<float>();
  CHECK(std::ranges::equal(dx, dy));
  for (std::size_t i = 0; i < 10; ++i) CHECK(gradient[i] == (i < 6 ? dy[i] + dy[i + 6] : 0.0F));
}

TEST_CASE("shapes that transformers' layers do not take are refused, with what they take") {
  const auto error_of = [](const Layer& layer, const Shape& shape) {
    try {
      static_cast<void>(build_graph(layer, shape));
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK_THAT(error_of(MultiHeadAttention(2), {3, 4}), Contains("takes (N, T, width), not (3, 4)"));
  CHECK_THAT(error_of(MultiHeadAttention(4), {2, 3, 6}),
             Contains("4 heads") && Contains("with a width that they divide, not (2, 3, 6)"));
  CHECK_THAT(error_of(MultiHeadAttention(0), {2, 3, 6}), Contains("at least one head"));
  CHECK_THAT(error_of(PositionalEmbedding(3), {2, 4, 6}), Contains("3 positions") && Contains("(2, 4, 6)"));
  CHECK_THAT(error_of(PositionalEmbedding(3), {2, 4}), Contains("(N, T, width)"));
  CHECK_THAT(error_of(Dense(3), {2, 4, 4, 3}), Contains("put a Flatten before it"));
  CHECK_THAT(error_of(Sequential(Dense(5), Dense(Embedding(7, 4))), {2, 6}),
             Contains("table of width 4") && Contains("(2, 5)"));
}

namespace {

/// A device that has what the plain loops have, but for attention, and whose memory they cannot read.
class WithoutAttention final : public Primitives {
 public:
  [[nodiscard]] std::string name() const override { return "a GPU"; }
  [[nodiscard]] bool on_processor() const noexcept override { return false; }
  std::unique_ptr<Operation> make(const OperationSpec& operation, std::span<const TensorDesc> inputs,
                                  const OperationContext& context) override {
    return std::holds_alternative<AttentionSpec>(operation) ? nullptr : plain_->make(operation, inputs, context);
  }

 private:
  std::unique_ptr<Primitives> plain_ = make_reference_primitives();
};

}  // namespace

TEST_CASE("on a device without attention one error says so") {
  WithoutAttention device;
  FirstPicker picker;
  CHECK_THROWS_WITH(PlainModel(MultiHeadAttention(2), {2, 3, 4}, device, picker),
                    Contains("a GPU has no operation for attention1 (attention)") && Contains(".device = cpu"));
}
