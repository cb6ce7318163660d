#pragma once
#include <filesystem>
#include <string>

#include <ronda/runtime/onnx/onnx_model.hpp>

namespace ronda {

/// Writes the protocol buffer that an ONNX file is, after ONNX's own checker and inference of shapes have seen it.
/// In proto/, or, in a build without ONNX, no_proto.cpp, where it throws InputError.
/// @param version  Ronda's
void write_proto(const std::filesystem::path& file, const OnnxModel& model, const std::string& version);

}  // namespace ronda
