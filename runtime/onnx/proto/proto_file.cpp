#include <ronda/core/error.hpp>
#include <ronda/runtime/io/atomic_file.hpp>
#include <ronda/runtime/onnx/operations/onnx_export.hpp>
#include <ronda/runtime/onnx/write_onnx.hpp>

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <onnx/checker.h>
#include <onnx/common/version.h>
#include <onnx/onnx_pb.h>
#include <onnx/shape_inference/implementation.h>

#include <exception>
#include <limits>
#include <type_traits>
#include <variant>

namespace ronda {
namespace {

/// What Debian 12's library knows, and runtimes since 2022.
constexpr std::int64_t ir_version = 8, opset = 17;

onnx::TensorProto::DataType type_of(DType dtype) {
  switch (dtype) {
    case DType::float32: return onnx::TensorProto::FLOAT;
    case DType::int32: return onnx::TensorProto::INT32;
    case DType::int64: return onnx::TensorProto::INT64;
    default: throw LogicError("no tensor of ONNX is " + std::string(name_of(dtype)) + " here");
  }
}

void fill(onnx::TensorProto& proto, const OnnxTensor& tensor) {
  proto.set_name(tensor.name);
  for (const std::int64_t extent : tensor.shape) proto.add_dims(extent);
  std::visit(
      [&](const auto& values) {
        using Number = std::remove_cvref_t<decltype(values[0])>;
        proto.set_data_type(type_of(dtype_of<Number>));
        proto.set_raw_data(values.data(), values.size() * sizeof(Number));
      },
      tensor.values);
}

void fill(onnx::AttributeProto& proto, const OnnxAttribute& attribute) {
  proto.set_name(attribute.name);
  if (const auto* number = std::get_if<std::int64_t>(&attribute.value)) {
    proto.set_type(onnx::AttributeProto::INT);
    proto.set_i(*number);
  } else if (const auto* real = std::get_if<float>(&attribute.value)) {
    proto.set_type(onnx::AttributeProto::FLOAT);
    proto.set_f(*real);
  } else if (const auto* numbers = std::get_if<std::vector<std::int64_t>>(&attribute.value)) {
    proto.set_type(onnx::AttributeProto::INTS);
    for (const std::int64_t each : *numbers) proto.add_ints(each);
  } else {
    proto.set_type(onnx::AttributeProto::STRING);
    proto.set_s(std::get<std::string>(attribute.value));
  }
}

void fill(onnx::NodeProto& proto, const OnnxNode& node) {
  proto.set_name(node.output);
  proto.set_op_type(node.kind);
  for (const std::string& input : node.inputs) proto.add_input(input);
  proto.add_output(node.output);
  for (const OnnxAttribute& attribute : node.attributes) fill(*proto.add_attribute(), attribute);
}

void fill(onnx::ValueInfoProto& proto, const OnnxValue& value) {
  proto.set_name(value.name);
  if (!value.text.empty()) proto.set_doc_string(value.text);
  auto& tensor = *proto.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(type_of(value.dtype));
  tensor.mutable_shape()->add_dim()->set_dim_param("N");
  for (const std::int64_t extent : value.sample) tensor.mutable_shape()->add_dim()->set_dim_value(extent);
}

onnx::ModelProto proto_of(const OnnxModel& model, const std::string& version) {
  onnx::ModelProto proto;
  proto.set_ir_version(ir_version);
  proto.set_producer_name("ronda");
  proto.set_producer_version(version);
  proto.add_opset_import()->set_version(opset);
  for (const auto& [key, value] : model.metadata) {
    auto& entry = *proto.add_metadata_props();
    entry.set_key(key);
    entry.set_value(value);
  }
  onnx::GraphProto& graph = *proto.mutable_graph();
  graph.set_name(model.name);
  for (const OnnxValue& input : model.inputs) fill(*graph.add_input(), input);
  for (const OnnxValue& output : model.outputs) fill(*graph.add_output(), output);
  for (const OnnxTensor& tensor : model.tensors) fill(*graph.add_initializer(), tensor);
  for (const OnnxNode& node : model.nodes) fill(*graph.add_node(), node);
  return proto;
}

/// The bytes of numbers, which nearly all of a file is.
std::size_t bytes_of(const OnnxModel& model) {
  std::size_t bytes = 0;
  for (const OnnxTensor& tensor : model.tensors)
    std::visit([&](const auto& values) { bytes += values.size() * sizeof(values[0]); }, tensor.values);
  return bytes;
}

void require_sound(onnx::ModelProto& proto) {
  try {
    onnx::checker::check_model(proto);
    onnx::shape_inference::InferShapes(proto, onnx::OpSchemaRegistry::Instance(),
                                       onnx::ShapeInferenceOptions(true, 1, true));
  } catch (const std::exception& error) {
    throw LogicError(std::string("ONNX's library refuses the model as it was translated: ") + error.what());
  }
}

/// Protocol buffers are to be written to a file of ours. They know no exceptions.
class FileStream final : public google::protobuf::io::CopyingOutputStream {
 public:
  explicit FileStream(AtomicFile& file) : file_(file) {}
  bool Write(const void* bytes, int count) override try {
    file_.write(std::span(static_cast<const std::byte*>(bytes), static_cast<std::size_t>(count)));
    return true;
  } catch (...) {
    error_ = std::current_exception();
    return false;
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  AtomicFile& file_;
  std::exception_ptr error_;
};

}  // namespace

std::string onnx_library() { return onnx::LAST_RELEASE_VERSION; }

void write_proto(const std::filesystem::path& path, const OnnxModel& model, const std::string& version) {
  constexpr std::size_t most = std::numeric_limits<std::int32_t>::max();
  if (bytes_of(model) >= most)
    throw InputError(path.string() + ": the model has " + std::to_string(bytes_of(model)) +
                     " bytes of parameters, and an ONNX file holds less than 2 GiB");
  onnx::ModelProto proto = proto_of(model, version);
  require_sound(proto);
  if (proto.ByteSizeLong() > most)
    throw InputError(path.string() + ": the model would take " + std::to_string(proto.ByteSizeLong()) +
                     " bytes, and an ONNX file holds less than 2 GiB");
  AtomicFile file(path);
  FileStream bytes(file);
  bool written = false;
  {
    google::protobuf::io::CopyingOutputStreamAdaptor stream(&bytes);
    written = proto.SerializeToZeroCopyStream(&stream) && stream.Flush();
  }
  bytes.rethrow();
  if (!written) throw ResourceError(path.string() + " cannot be written as a protocol buffer");
  file.commit();
}

}  // namespace ronda
