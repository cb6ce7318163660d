#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <ronda/core/dtype.hpp>
#include <ronda/core/shape.hpp>

namespace ronda {

/// An attribute of an ONNX operator: `{"axis", 1}`. Integers are std::int64_t.
struct OnnxAttribute {
  std::string name;
  std::variant<std::int64_t, float, std::vector<std::int64_t>, std::string> value;
};

/// An operator, with the names of its input and output values.
struct OnnxNode {
  std::string kind;                 ///< `Gemm`
  std::vector<std::string> inputs;  ///< an empty name: input is omitted
  std::string output;               ///< also the node's name
  std::vector<OnnxAttribute> attributes;
};

/// A constant of the file, row-major. Values in a span are not owned.
struct OnnxTensor {
  std::string name;
  Shape shape;
  std::variant<std::span<const float>, std::vector<float>, std::vector<std::int32_t>, std::vector<std::int64_t>> values;
};

/// An input or output of a model: (N, …), with any number N of samples.
struct OnnxValue {
  std::string name;
  Shape sample;  ///< shape of a sample, without N
  DType dtype = DType::float32;
  std::string text;  ///< description for users
};

/// The content of an ONNX file, of opset 17.
struct OnnxModel {
  std::string name;
  std::vector<OnnxValue> inputs, outputs;
  std::vector<OnnxTensor> tensors;
  std::vector<OnnxNode> nodes;
  std::map<std::string, std::string> metadata;
};

}  // namespace ronda
