#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ronda/layers/cudnn/cublas_lt.hpp>
#include <ronda/layers/primitives.hpp>

namespace ronda::cudnn {

/// A matrix in memory, row after row without gaps.
struct Matrix {
  std::int64_t rows, columns;
};

/// What is done to the product before it is written.
enum class Epilogue : std::uint8_t {
  none,
  bias,           ///< a bias for each column of the result is added …
  bias_gradient,  ///< the sums of the columns of the left factor, before its transposition, are written beside it
};

/// result = left · right, either factor transposed, all of the precision's type, sums in float32; by cuBLASLt, and, if
/// the rules say so, by deterministic algorithms alone.
///
/// cuBLASLt thinks in columns: our matrices are its transposed ones, so it is asked for resultᵀ = rightᵀ · leftᵀ, and
/// what is a column here is a row there.
class Matmul {
 public:
  struct Factor {
    Matrix matrix;  ///< as it lies
    bool transposed;
  };
  /// Needs no device. Throws LogicError where the shapes do not fit.
  Matmul(const Factor& left, const Factor& right, Epilogue epilogue, const EngineRules& rules);

  /// The library's suggestions for this device, at most `engines_tried`, best first; none where it has none.
  void find_algorithms(cublasLtHandle_t library);
  [[nodiscard]] std::size_t algorithms() const noexcept { return algorithms_.size(); }
  [[nodiscard]] std::size_t workspace_bytes(std::size_t algorithm) const {
    return algorithms_[algorithm].workspaceSize;
  }

  struct Operands {
    const void* left;
    const void* right;
    void* result;
    void* bias;         ///< read or written, as the epilogue says; null without
    bool more = false;  ///< the product is added to what the result has
  };
  void run(cublasLtHandle_t library, cudaStream_t stream, const Operands& operands, std::byte* workspace,
           std::size_t algorithm);

 private:
  struct Destroy {
    void operator()(cublasLtMatmulDesc_t d) const noexcept { cublas_lt().desc_destroy(d); }
    void operator()(cublasLtMatrixLayout_t d) const noexcept { cublas_lt().layout_destroy(d); }
    void operator()(cublasLtMatmulPreference_t d) const noexcept { cublas_lt().preference_destroy(d); }
  };
  template <class Pointer>
  using Owned = std::unique_ptr<std::remove_pointer_t<Pointer>, Destroy>;
  static Owned<cublasLtMatrixLayout_t> layout_of(const Matrix& matrix, DType dtype);

  bool has_bias_, sums_in_any_order_;
  Owned<cublasLtMatmulDesc_t> operation_;
  Owned<cublasLtMatrixLayout_t> left_, right_, result_;
  std::vector<cublasLtMatmulHeuristicResult_t> algorithms_;
};

}  // namespace ronda::cudnn
