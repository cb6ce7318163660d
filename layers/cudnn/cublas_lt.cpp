#include <dlfcn.h>

#include <string>

#include <ronda/core/error.hpp>
#include <ronda/layers/cudnn/cublas_lt.hpp>

namespace ronda::cudnn {
namespace {

/// RONDA_CUBLASLT_NAME is what the loader knows it by; RONDA_CUBLASLT_FILE is where it lay when this was compiled.
void* load() {
  if (void* library = ::dlopen(RONDA_CUBLASLT_NAME, RTLD_LAZY | RTLD_LOCAL)) return library;
  const std::string problem = ::dlerror();
  if (void* library = ::dlopen(RONDA_CUBLASLT_FILE, RTLD_LAZY | RTLD_LOCAL)) return library;
  throw DeviceError("cuBLASLt: " + problem + "; add its folder to LD_LIBRARY_PATH");
}

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  if (function == nullptr) throw DeviceError(std::string("cuBLASLt: the library has no ") + name);
}

CublasLt functions() {
  void* const library = load();
  CublasLt lt{};
  find(library, "cublasLtCreate", lt.create);
  find(library, "cublasLtDestroy", lt.destroy);
  find(library, "cublasLtGetStatusString", lt.status_string);
  find(library, "cublasLtGetVersion", lt.version);
  find(library, "cublasLtMatrixLayoutCreate", lt.layout_create);
  find(library, "cublasLtMatrixLayoutDestroy", lt.layout_destroy);
  find(library, "cublasLtMatmulDescCreate", lt.desc_create);
  find(library, "cublasLtMatmulDescDestroy", lt.desc_destroy);
  find(library, "cublasLtMatmulDescSetAttribute", lt.desc_set);
  find(library, "cublasLtMatmulPreferenceCreate", lt.preference_create);
  find(library, "cublasLtMatmulPreferenceDestroy", lt.preference_destroy);
  find(library, "cublasLtMatmulPreferenceSetAttribute", lt.preference_set);
  find(library, "cublasLtMatmulAlgoGetHeuristic", lt.heuristic);
  find(library, "cublasLtMatmul", lt.matmul);
  return lt;
}

}  // namespace

const CublasLt& cublas_lt() {
  static const CublasLt lt = functions();
  return lt;
}

}  // namespace ronda::cudnn
