// A build without ONNX says what to install.
#include "onnx/models.hpp"
#include "support/catch.hpp"
#include "support/message.hpp"

#include <ronda/core/error.hpp>
#include <ronda/runtime/onnx/write_onnx.hpp>

using namespace ronda;
using namespace ronda::test;

TEST_CASE("a build without ONNX says what to install") {
  const Field field{"input", {4}};
  const Graph graph = build_graph(Dense(3), {&field, 1}, 1);
  require_mentions(
      message_of<InputError>([&] { write_onnx("/nowhere/model.onnx", graph, made_tensors(graph), "made"); }),
      {"/nowhere/model.onnx", "libonnx-dev"});
  CHECK(onnx_library().empty());
}
