// What cuDNN has for the convolutions of the applications on this GPU. Needs a GPU.
#include "support/catch.hpp"

#include <string>
#include <utility>

#include <ronda/layers/cudnn/graph.hpp>
#include <ronda/layers/cudnn/library.hpp>

using namespace ronda;
using namespace ronda::cudnn;

TEST_CASE("every graph of a convolution has an engine here; those alone and by name") {
  const auto context = make_cuda_context(0);
  const auto stream = context->make_stream(StreamPriority::usual);
  for (const auto& [precision, deterministic] : {std::pair(Precision::float32, true),
                                                 {Precision::float32, false},
                                                 {Precision::tf32, true},
                                                 {Precision::mixed_bfloat16, true},
                                                 {Precision::mixed_float16, true}}) {
    const Library library(*context, *stream, {precision, deterministic});
    for (const auto& [size, channels, outputs] : {std::array<std::int64_t, 3>{28, 1, 32}, {13, 32, 64}, {5, 64, 64}})
      for (const auto kind : {ConvolutionGraph::forward, ConvolutionGraph::forward_bias,
                              ConvolutionGraph::data_gradient, ConvolutionGraph::weight_gradient}) {
        const ConvolutionProblem spec{{.outputs = outputs}, {{64, size, size, channels}, library.dtype(), {}}};
        const auto graph = make_graph(spec, kind, library.rules());
        graph->find_engines(library, {});
        std::string line = library.name() + ": " + spec.input.text() + " to " + std::to_string(outputs) + ", graph " +
                           std::to_string(static_cast<int>(kind)) + ":";
        for (const auto& engine : graph->engines())
          line += " " + engine.name + " (" + std::to_string(engine.workspace_bytes) + " bytes)";
        WARN(line << graph->why_none());  // of every graph: what a picker has to choose from
        const bool fused = kind == ConvolutionGraph::forward_bias;
        if (!fused) CHECK_FALSE(graph->engines().empty());  // what a fused one lacks, a kernel does
        if (graph->engines().empty()) continue;
        const std::string last = graph->engines().back().name;
        const auto again = make_graph(spec, kind, library.rules());
        again->find_engines(library, last);
        REQUIRE(again->engines().size() == 1);
        CHECK(again->engines()[0].name == last);
      }
  }
}
