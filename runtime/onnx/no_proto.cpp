// What a build without ONNX has in the place of the folder proto/.
#include <ronda/core/error.hpp>
#include <ronda/runtime/onnx/operations/onnx_export.hpp>
#include <ronda/runtime/onnx/write_onnx.hpp>

namespace ronda {

std::string onnx_library() { return {}; }

void write_proto(const std::filesystem::path& file, const OnnxModel&, const std::string&) {
  throw InputError(
      file.string() +
      ": this build of Ronda lacks ONNX; install libonnx-dev and libprotobuf-dev, and configure and build it "
      "anew");
}

}  // namespace ronda
