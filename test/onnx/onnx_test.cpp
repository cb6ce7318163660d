// What is exported is sound ONNX, with the names, shapes and numbers of the model. That runtimes compute the same from
// it is for scripts/check_onnx.sh.
#include "../../apps/saved_model.hpp"
#include "onnx/models.hpp"
#include "support/catch.hpp"
#include "support/message.hpp"
#include "support/temporary_folder.hpp"

#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <onnx/checker.h>
#include <onnx/onnx_pb.h>
#include <onnx/shape_inference/implementation.h>

#include <ronda/core/error.hpp>
#include <ronda/runtime/onnx/write_onnx.hpp>

using namespace ronda;
using namespace ronda::test;

namespace {

/// The file, which ONNX's library finds sound.
onnx::ModelProto sound(const std::filesystem::path& file) {
  onnx::ModelProto model;
  REQUIRE(model.ParseFromString(read_file(file)));
  onnx::checker::check_model(model);
  onnx::shape_inference::InferShapes(model, onnx::OpSchemaRegistry::Instance(),
                                     onnx::ShapeInferenceOptions(true, 1, true));
  return model;
}

/// `N 3 32 32`.
std::string shape_of(const onnx::ValueInfoProto& value) {
  std::string text;
  for (const auto& extent : value.type().tensor_type().shape().dim())
    text +=
        (text.empty() ? "" : " ") + (extent.has_dim_param() ? extent.dim_param() : std::to_string(extent.dim_value()));
  return text;
}

std::string metadata(const onnx::ModelProto& model, const std::string& key) {
  for (const auto& entry : model.metadata_props())
    if (entry.key() == key) return entry.value();
  return {};
}

onnx::ModelProto exported(const Layer& layer, const std::vector<Field>& fields) {
  const TemporaryFolder folder;
  const Graph graph = build_graph(layer, fields, 2);
  write_onnx(folder / "model.onnx", graph, made_tensors(graph), "made");
  return sound(folder / "model.onnx");
}

std::size_t count(const onnx::ModelProto& model, const std::string& kind) {
  std::size_t found = 0;
  for (const auto& node : model.graph().node()) found += node.op_type() == kind ? 1 : 0;
  return found;
}

}  // namespace

TEST_CASE("the model of every application becomes sound ONNX, for any number of samples") {
  struct Case {
    std::string card, input, output;
  };
  const std::vector<Case> cases{
      {R"({"application": "mnist_softmax"})", "N 1 28 28", "N 10"},
      {R"({"application": "mnist_mlp", "hidden": [30, 20]})", "N 1 28 28", "N 10"},
      {R"({"application": "mnist_cnn"})", "N 1 28 28", "N 10"},
      {R"({"application": "mnist_resnet"})", "N 1 28 28", "N 10"},
      {R"({"application": "cifar10_cnn", "classes": 10})", "N 3 32 32", "N 10"},
      {R"({"application": "cifar10_resnet"})", "N 3 32 32", "N 10"},
      {R"({"application": "imagenet_resnet50", "size": 64, "classes": ["cat", "dog"]})", "N 3 64 64", "N 2"},
      {R"({"application": "tabular", "hidden": [8], "inputs": ["a", "b"], "means": [1, 2], "deviations": [3, 4],
           "target": "y", "target_mean": 5, "target_deviation": 6})",
       "N 2", "N 1"},
      {R"({"application": "text_classifier", "tokens": 50, "width": 8, "words": 9, "classes": 2})", "N 9", "N 2"},
      {R"({"application": "char_gpt", "layers": 2, "heads": 2, "width": 16, "context": 12})", "N 12", "N 12 256"}};
  const TemporaryFolder folder;
  for (const auto& [card, input, output] : cases) {
    INFO(card);
    write_safetensors(folder / "empty", {}, {{"ronda.model", card}});
    const apps::SavedModel saved = apps::read_saved_model(folder / "empty");
    const Field field = saved.input_field();
    const Graph graph = build_graph(saved.model, {&field, 1}, 1);
    const std::vector<NamedTensor> tensors = made_tensors(graph);
    write_onnx(
        folder / "model.onnx", graph, tensors, "made",
        {.name = saved.application, .metadata = {{"ronda.model", card}}, .value_texts = {{"input", "what it is"}}});
    const onnx::ModelProto model = sound(folder / "model.onnx");
    REQUIRE(model.graph().input_size() == 1);
    CHECK(model.graph().input(0).name() == "input");
    CHECK(model.graph().input(0).doc_string() == "what it is");
    CHECK(shape_of(model.graph().input(0)) == input);
    REQUIRE(model.graph().output_size() == 1);
    CHECK(model.graph().output(0).name() == "output");
    CHECK(shape_of(model.graph().output(0)) == output);
    CHECK(model.graph().name() == saved.application);
    CHECK(model.producer_name() == "ronda");
    CHECK(metadata(model, "ronda.model") == card);
    CHECK_FALSE(metadata(model, "ronda.version").empty());
    CHECK(model.opset_import(0).version() == 17);
    // Parameters have names, shapes and bytes of files.
    std::map<std::string, const onnx::TensorProto*> initializers;
    for (const auto& tensor : model.graph().initializer()) initializers[tensor.name()] = &tensor;
    for (const NamedTensor& tensor : tensors) {
      INFO(tensor.name);
      REQUIRE(initializers.contains(tensor.name));
      const std::string& bytes = initializers[tensor.name]->raw_data();
      REQUIRE(bytes.size() == tensor.values.size() * sizeof(float));
      CHECK(std::memcmp(bytes.data(), tensor.values.data(), bytes.size()) == 0);
    }
  }
}

TEST_CASE("every operation becomes sound ONNX of the graph's shapes") {
  for (const SmallModel& small : small_models()) {
    INFO(small.name);
    const onnx::ModelProto model = exported(small.model, small.fields);
    CHECK(model.graph().input_size() == static_cast<int>(small.fields.size()));
    std::set<std::string> names;
    for (const auto& node : model.graph().node()) CHECK(names.insert(node.name()).second);
  }
}

TEST_CASE("layers become the operators that people know") {
  const Field image{"input", {9, 7, 4}};
  const onnx::ModelProto model = exported(
      Sequential(Conv2d(6, 3), BatchNorm(), ReLU(), GlobalAveragePool(), Flatten(), Dropout(0.3), Dense(5)), {image});
  for (const char* kind : {"Conv", "BatchNormalization", "Relu", "GlobalAveragePool", "Flatten", "Gemm"})
    CHECK(count(model, kind) == 1);
  CHECK(model.graph().node_size() == 6);
  CHECK(model.graph().node(0).name() == "conv1.Conv");
}

TEST_CASE("names that are taken stay with those that have them") {
  // A field that is called as the output is; a model that does nothing in evaluation.
  const onnx::ModelProto model = exported(
      Function([](Value, GraphBuilder& b) { return Dropout(0.5).build(b.input("output"), b); }), {{"output", {3}}});
  CHECK(model.graph().input(0).name() == "output");
  CHECK(model.graph().output(0).name() == "output_2");
  CHECK(count(model, "Identity") == 1);
  // The same layer twice: one parameter.
  const Dense twice(8);
  const onnx::ModelProto shared = exported(Sequential(twice, twice), {{"input", {8}}});
  CHECK(shared.graph().initializer_size() == 2);
  CHECK(count(shared, "Gemm") == 2);
  // An operation that nothing reads.
  const onnx::ModelProto read = exported(Sequential([](Value x, GraphBuilder& b) {
                                           const Value y = Tanh().build(x, b);
                                           static_cast<void>(ReLU().build(y, b));
                                           return y;
                                         }),
                                         {{"input", {8}}});
  CHECK(read.graph().node_size() == 1);
}

TEST_CASE("what cannot be exported is named, and nothing is written") {
  const TemporaryFolder folder;
  const auto file = folder / "model.onnx";
  const Field field{"input", {4}};
  const auto message = [&](const Layer& layer, const std::function<void(std::vector<NamedTensor>&)>& change) {
    const Graph graph = build_graph(layer, {&field, 1}, 1);
    std::vector<NamedTensor> tensors = made_tensors(graph);
    change(tensors);
    return message_of<InputError>([&] { write_onnx(file, graph, tensors, "some file"); });
  };
  const auto as_is = [](std::vector<NamedTensor>&) {};
  require_mentions(message(Sequential(Dense(3), PReLU(false)), as_is), {"prelu1", "'prelu'", "OnnxTranslation"});
  require_mentions(message(Dense(3), [](auto& tensors) { tensors.pop_back(); }), {"some file", "dense1.bias"});
  require_mentions(message(Dense(3),
                           [](auto& tensors) {
                             tensors[0].shape = {4, 3};
                           }),
                   {"some file", "dense1.weight", "(4, 3)", "(3, 4)"});
  require_mentions(message(Dense(3), [](auto& tensors) { tensors[0].values.pop_back(); }),
                   {"some file", "dense1.weight"});
  require_mentions(message(Dense(3),
                           [](auto& tensors) {
                             tensors.push_back({"dense2.weight", {1}, {1}});
                           }),
                   {"some file", "dense2.weight"});
  CHECK(std::filesystem::is_empty(folder.path()));

  // A translation that is no sound ONNX is the program's error.
  struct Wrong final : CustomOperation, OnnxTranslation {
    [[nodiscard]] std::string_view kind() const noexcept override { return "wrong"; }
    [[nodiscard]] Shape output(std::span<const Shape> inputs) const override { return inputs[0]; }
    void forward(const CustomArguments&, const Pass&) const override {}
    void backward(const CustomArguments&, const Pass&) const override {}
    std::string to_onnx(OnnxWriter& onnx) const override { return onnx.apply("NoSuchOperator", {onnx.input()}); }
  };
  const Graph graph = build_graph(
      Function([](Value x, GraphBuilder& b) { return b.apply(std::make_shared<Wrong>(), {x}); }), {&field, 1}, 1);
  require_mentions(message_of<LogicError>([&] { write_onnx(file, graph, {}, "made"); }), {"NoSuchOperator"});
  CHECK(std::filesystem::is_empty(folder.path()));
}
