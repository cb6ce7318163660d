#include <ronda/core/error.hpp>
#include <ronda/layers/cudnn/library.hpp>
#include <ronda/layers/cudnn/matmul.hpp>

namespace ronda::cudnn {
namespace {

Matrix as_used(const Matmul::Factor& factor) {
  const Matrix& m = factor.matrix;
  return factor.transposed ? Matrix{m.columns, m.rows} : m;
}

cublasLtEpilogue_t epilogue_of(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::none: return CUBLASLT_EPILOGUE_DEFAULT;
    case Epilogue::bias: return CUBLASLT_EPILOGUE_BIAS;
    case Epilogue::bias_gradient: return CUBLASLT_EPILOGUE_BGRADB;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

cudaDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::float16: return CUDA_R_16F;
    case DType::bfloat16: return CUDA_R_16BF;
    default: return CUDA_R_32F;
  }
}

template <class Value>
void set(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute, const Value& value) {
  check(cublas_lt().desc_set(operation, attribute, &value, sizeof value), "cublasLtMatmulDescSetAttribute");
}

template <class Value>
void set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute, const Value& value) {
  check(cublas_lt().preference_set(preference, attribute, &value, sizeof value),
        "cublasLtMatmulPreferenceSetAttribute");
}

}  // namespace

Matmul::Owned<cublasLtMatrixLayout_t> Matmul::layout_of(const Matrix& matrix, DType dtype) {
  cublasLtMatrixLayout_t layout = nullptr;
  check(cublas_lt().layout_create(&layout, type_of(dtype), static_cast<std::uint64_t>(matrix.columns),
                                  static_cast<std::uint64_t>(matrix.rows), matrix.columns),
        "cublasLtMatrixLayoutCreate");
  return Owned<cublasLtMatrixLayout_t>(layout);
}

Matmul::Matmul(const Factor& left, const Factor& right, Epilogue epilogue, const EngineRules& rules)
    : has_bias_(epilogue != Epilogue::none),
      sums_in_any_order_(!rules.deterministic && dtype_of_layers(rules.precision) == DType::float32),
      left_(layout_of(left.matrix, dtype_of_layers(rules.precision))),
      right_(layout_of(right.matrix, dtype_of_layers(rules.precision))) {
  const Matrix l = as_used(left), r = as_used(right);
  if (l.columns != r.rows) throw LogicError("the factors of a product do not fit");
  if (epilogue == Epilogue::bias_gradient && !left.transposed)
    throw LogicError("a bias gradient is that of a left factor that is transposed");
  result_ = layout_of({l.rows, r.columns}, dtype_of_layers(rules.precision));
  cublasLtMatmulDesc_t operation = nullptr;
  check(cublas_lt().desc_create(&operation,
                                rules.precision == Precision::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
                                CUDA_R_32F),
        "cublasLtMatmulDescCreate");
  operation_.reset(operation);
  const auto transposition = [](bool transposed) { return transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
  set(operation, CUBLASLT_MATMUL_DESC_TRANSA, transposition(right.transposed));
  set(operation, CUBLASLT_MATMUL_DESC_TRANSB, transposition(left.transposed));
  set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(epilogue));
  if (has_bias_) set(operation, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type_of(dtype_of_layers(rules.precision)));
}

void Matmul::find_algorithms(cublasLtHandle_t library) {
  cublasLtMatmulPreference_t created = nullptr;
  check(cublas_lt().preference_create(&created), "cublasLtMatmulPreferenceCreate");
  const Owned<cublasLtMatmulPreference_t> preference(created);
  set(created, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_limit);
  // Partial sums apart, in float32, added in order; or wherever they come to the result, if that is float32 too.
  const auto reductions = static_cast<std::uint32_t>(sums_in_any_order_ ? CUBLASLT_REDUCTION_SCHEME_MASK
                                                                        : CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
  set(created, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions);
  constexpr std::uint32_t alignment = 64;  // of the arenas
  for (const auto attribute : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                               CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    set(created, attribute, alignment);
  // A suggestion may depend on whether there is a bias and how it is aligned, not on where; null is refused.
  if (has_bias_)
    set(operation_.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, reinterpret_cast<const void*>(std::uintptr_t{alignment}));
  algorithms_.resize(engines_tried);
  int found = 0;
  const cublasStatus_t status =
      cublas_lt().heuristic(library, operation_.get(), right_.get(), left_.get(), result_.get(), result_.get(), created,
                            static_cast<int>(engines_tried), algorithms_.data(), &found);
  if (status != CUBLAS_STATUS_NOT_SUPPORTED && status != CUBLAS_STATUS_INVALID_VALUE)  // an epilogue that it has not
    check(status, "cublasLtMatmulAlgoGetHeuristic");
  algorithms_.resize(status == CUBLAS_STATUS_SUCCESS ? static_cast<std::size_t>(found) : 0);
  std::erase_if(algorithms_, [](const auto& suggestion) { return suggestion.state != CUBLAS_STATUS_SUCCESS; });
}

void Matmul::run(cublasLtHandle_t library, cudaStream_t stream, const Operands& operands, std::byte* workspace,
                 std::size_t algorithm) {
  if (has_bias_) set(operation_.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, const_cast<const void*>(operands.bias));
  const auto& chosen = algorithms_[algorithm];
  const float one = 1, kept = operands.more ? 1 : 0;
  check(cublas_lt().matmul(library, operation_.get(), &one, operands.right, right_.get(), operands.left, left_.get(),
                           &kept, operands.result, result_.get(), operands.result, result_.get(), &chosen.algo,
                           workspace, chosen.workspaceSize, stream),
        "cublasLtMatmul");
}

}  // namespace ronda::cudnn
