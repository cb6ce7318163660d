#include <ronda/core/cuda/launch.cuh>
#include <ronda/core/cuda/stream.hpp>
#include <ronda/layers/cudnn/kernels.hpp>
#include <ronda/layers/cudnn/patch_arithmetic.hpp>

namespace ronda::cudnn {

using cuda::handle_of;

template <class Body>
void launch(Stream& stream, std::int64_t count, const Body& body) {
  cuda::for_each(handle_of(stream), count, body);
}

template <class Body>
void launch_teams(Stream& stream, std::int64_t count, const Body& body) {
  cuda::for_each_by_warp(handle_of(stream), count, body);
}

template <Number T>
void sum_columns(Stream& stream, const T* x, std::int64_t rows, std::int64_t columns, float* scratch, T* sums) {
  const std::int64_t chunks = column_chunks(rows, columns);
  launch(stream, chunks * columns, SumRows<T, float>{x, scratch, rows, columns, chunks});
  launch(stream, columns, SumRows<float, T>{scratch, sums, chunks, columns, 1});
}

// What the files that are not compiled by nvcc call.
#define RONDA_KERNELS(T)                                                   \
  template void launch(Stream&, std::int64_t, const Transpose<T>&);        \
  template void launch(Stream&, std::int64_t, const AddBias<T>&);          \
  template void launch(Stream&, std::int64_t, const Add<T>&);              \
  template void launch(Stream&, std::int64_t, const CopyColumns<T>&);      \
  template void launch(Stream&, std::int64_t, const Pool<T>&);             \
  template void launch(Stream&, std::int64_t, const PoolGradient<T>&);     \
  template void launch_teams(Stream&, std::int64_t, const SoftmaxRow<T>&); \
  template void sum_columns(Stream&, const T*, std::int64_t, std::int64_t, float*, T*);
RONDA_KERNELS(float)
RONDA_KERNELS(Float16)
RONDA_KERNELS(BFloat16)
#undef RONDA_KERNELS

#define RONDA_FUNCTION(Row)                                                              \
  template void launch(Stream&, std::int64_t, const Elementwise<Row, float>&);           \
  template void launch(Stream&, std::int64_t, const Elementwise<Row, Float16>&);         \
  template void launch(Stream&, std::int64_t, const Elementwise<Row, BFloat16>&);        \
  template void launch(Stream&, std::int64_t, const ElementwiseGradient<Row, float>&);   \
  template void launch(Stream&, std::int64_t, const ElementwiseGradient<Row, Float16>&); \
  template void launch(Stream&, std::int64_t, const ElementwiseGradient<Row, BFloat16>&);
RONDA_FUNCTION(elementwise::Relu)
RONDA_FUNCTION(elementwise::Gelu)
RONDA_FUNCTION(elementwise::Silu)
RONDA_FUNCTION(elementwise::Tanh)
RONDA_FUNCTION(elementwise::Sigmoid)
#undef RONDA_FUNCTION

template void launch(Stream&, std::int64_t, const Patches<float>&);
template void launch(Stream&, std::int64_t, const Patches<FourFloats>&);
template void launch(Stream&, std::int64_t, const PatchSums<float>&);
template void launch(Stream&, std::int64_t, const PatchSums<FourFloats>&);

template void launch_teams(Stream&, std::int64_t, const SumLosses&);
template void launch(Stream&, std::int64_t, const Convert<float, Float16>&);
template void launch(Stream&, std::int64_t, const Convert<float, BFloat16>&);
template void launch(Stream&, std::int64_t, const Convert<Float16, float>&);
template void launch(Stream&, std::int64_t, const Convert<BFloat16, float>&);

}  // namespace ronda::cudnn
