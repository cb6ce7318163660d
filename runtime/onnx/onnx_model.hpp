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

/// What an operator of ONNX is told beside its inputs: `{"axis", 1}`. Whole numbers are std::int64_t.
struct OnnxAttribute {
  std::string name;
  std::variant<std::int64_t, float, std::vector<std::int64_t>, std::string> value;
};

/// An operator, by the names of the values that it reads and gives.
struct OnnxNode {
  std::string kind;                 ///< `Gemm`
  std::vector<std::string> inputs;  ///< empty: one that is left out
  std::string output;               ///< also the node's name
  std::vector<OnnxAttribute> attributes;
};

/// Numbers that are in the file, row-major: somebody else's, or its own.
struct OnnxTensor {
  std::string name;
  Shape shape;
  std::variant<std::span<const float>, std::vector<float>, std::vector<std::int32_t>, std::vector<std::int64_t>> values;
};

/// What goes into a model, or comes out: (N, …), where N, the samples, is any number.
struct OnnxValue {
  std::string name;
  Shape sample;  ///< without the N
  DType dtype = DType::float32;
  std::string text;  ///< what it is, for people
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
