#pragma once
#include <cublasLt.h>

namespace ronda::cudnn {

/// cuBLASLt's functions, by their names without the prefix. Its library is loaded with the first GPU program: linked,
/// its half gigabyte would cost the start of every process a tenth of a second, with a GPU or without.
struct CublasLt {
  decltype(&cublasLtCreate) create;
  decltype(&cublasLtDestroy) destroy;
  decltype(&cublasLtGetStatusString) status_string;
  decltype(&cublasLtGetVersion) version;
  decltype(&cublasLtMatrixLayoutCreate) layout_create;
  decltype(&cublasLtMatrixLayoutDestroy) layout_destroy;
  decltype(&cublasLtMatmulDescCreate) desc_create;
  decltype(&cublasLtMatmulDescDestroy) desc_destroy;
  decltype(&cublasLtMatmulDescSetAttribute) desc_set;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic;
  decltype(&cublasLtMatmul) matmul;
};

/// Those of this process, which keeps the library from the first call on. Throws DeviceError where it cannot be loaded.
const CublasLt& cublas_lt();

}  // namespace ronda::cudnn
