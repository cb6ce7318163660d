// Every graph makes sense to cuDNN, and every product to cuBLASLt, as far as they say so without a GPU.
#include "support/catch.hpp"

#include <string>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/layers/cudnn/choice.hpp>
#include <ronda/layers/cudnn/graph.hpp>
#include <ronda/layers/cudnn/matmul.hpp>

using namespace ronda;
using namespace ronda::cudnn;

namespace {

constexpr Precision precisions[] = {Precision::float32, Precision::tf32, Precision::mixed_bfloat16,
                                    Precision::mixed_float16};

}  // namespace

TEST_CASE("every graph of a convolution passes cuDNN's check") {
  for (const auto& [batch, size, channels] : {std::array<std::int64_t, 3>{64, 28, 1}, {1, 13, 32}, {4096, 5, 64}})
    for (const auto& [kernel, stride, padding] : {std::array<std::int64_t, 3>{3, 1, 0}, {5, 2, 2}, {1, 1, 0}})
      for (const auto kind : {ConvolutionGraph::forward, ConvolutionGraph::forward_bias,
                              ConvolutionGraph::data_gradient, ConvolutionGraph::weight_gradient})
        for (const Precision precision : precisions) {
          const ConvolutionProblem spec{{.outputs = 32, .kernel = kernel, .stride = stride, .padding = padding},
                                        {{batch, size, size, channels}, dtype_of_layers(precision), {}}};
          const auto graph = make_graph(spec, kind, {precision});
          CHECK(graph->engines().empty());  // nobody asked a device yet
        }
}

TEST_CASE("graphs of convolutions of unequal sides, with dilation, groups and uneven padding pass it too") {
  for (const ConvolutionSpec& spec :
       {ConvolutionSpec{.outputs = 16, .kernel = {1, 7}, .stride = {2, 1}, .padding = {0, 3}},
        ConvolutionSpec{.outputs = 16, .padding = {2, 1}, .dilation = {2, 3}},
        ConvolutionSpec{.outputs = 16, .kernel = {2, 4}, .padding = {0, 1}, .trailing = 1},
        ConvolutionSpec{.outputs = 16, .groups = 2}, ConvolutionSpec{.outputs = 8, .padding = 1, .groups = 8}})
    for (const auto kind : {ConvolutionGraph::forward, ConvolutionGraph::forward_bias, ConvolutionGraph::data_gradient,
                            ConvolutionGraph::weight_gradient})
      for (const Precision precision : precisions) {
        INFO(text_of_windows(spec));
        CHECK_NOTHROW(make_graph({spec, {{4, 9, 12, 8}, dtype_of_layers(precision), {}}}, kind, {precision}));
      }
}

TEST_CASE("a graph that makes no sense does not pass") {
  ConvolutionProblem spec{{.outputs = 8}, {{2, 8, 8, 4}, DType::float32, {}}};
  spec.stride = 0;
  CHECK_THROWS_AS(make_graph(spec, ConvolutionGraph::forward, {}), Error);
}

TEST_CASE(
    "a candidate that fails when it is run leaves its place empty; where all fail it is said how, and the remedy") {
  CpuStream stream;
  FirstPicker first;
  const auto name = [](std::size_t i) { return "engine " + std::to_string(i); };
  std::vector<std::size_t> ran;
  const auto fails_before = [&](std::size_t good) {
    return [&ran, good](std::size_t i) {
      ran.push_back(i);
      if (i < good) throw DeviceError("cuDNN: not supported");
    };
  };
  Choice choice(stream);
  choice.add_way("fused", 2, name, fails_before(2));
  choice.add_way("product", 3, name, fails_before(1));
  CHECK(ran == std::vector<std::size_t>{0, 1, 0, 1, 2});
  CHECK_FALSE(choice.has("fused engine 1"));
  CHECK_FALSE(choice.has("product engine 0"));
  CHECK(choice.has("product engine 1"));
  CHECK_FALSE(choice.has("product engine 3"));
  const auto picked = choice.pick(first, "a question", "", {Precision::float32});
  CHECK(picked.way == 1);
  CHECK(picked.engine == 1);
  CHECK(picked.name == "product engine 1");

  Choice none(stream);
  none.add_way("fused", 2, name, fails_before(2));
  const std::string found =
      "NVIDIA's libraries have nothing for a question: no engine; fused engine 1: cuDNN: not supported; ";
  CHECK_THROWS_WITH(none.pick(first, "a question", "no engine", {Precision::float32}),
                    found +
                        ".precision = tf32 takes engines that are less exact, .nondeterministic those that add up in "
                        "any order, and .device = cpu none of them");
  CHECK_THROWS_WITH(none.pick(first, "a question", "no engine", {Precision::tf32, false}),
                    found + "a newer cuDNN may have one, and .device = cpu none of them");
}

TEST_CASE("a candidate's name tells its engine") {
  CHECK(Choice::engine_of("fused eng3_k2=1", "fused") == "eng3_k2=1");
  CHECK(Choice::engine_of("fused eng3_k2=1", "convolution").empty());
  CHECK(Choice::engine_of("", "fused").empty());
  CHECK(Choice::engine_of("fused", "fused").empty());
  CHECK(Choice::engine_of("fusedness 3", "fused").empty());
}

TEST_CASE("weights on a GPU have their channels last") {
  CHECK(weight_layout().tag() == "acdb");
  const TensorDesc desc{{2, 3, 5, 5}, DType::float32, weight_layout()};
  CHECK(desc.padded_count() == desc.count());
}

TEST_CASE("every product of a dense layer is described to cuBLASLt; factors that do not fit are refused") {
  const Matrix x{64, 784}, w{128, 784}, y{64, 128};
  for (const Precision precision : precisions) {
    for (const Epilogue epilogue : {Epilogue::none, Epilogue::bias})
      CHECK_NOTHROW(Matmul({x, false}, {w, true}, epilogue, {precision}));
    for (const Epilogue epilogue : {Epilogue::none, Epilogue::bias_gradient})
      CHECK_NOTHROW(Matmul({y, true}, {x, false}, epilogue, {precision}));
    CHECK_NOTHROW(Matmul({y, false}, {w, false}, Epilogue::none, {precision}));
  }
  CHECK_THROWS_AS(Matmul({x, false}, {w, false}, Epilogue::none, {}), LogicError);
  CHECK_THROWS_AS(Matmul({y, false}, {w, false}, Epilogue::bias_gradient, {}), LogicError);
}
