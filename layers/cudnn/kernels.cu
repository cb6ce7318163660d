#include <ronda/layers/cudnn/kernels.hpp>
#include <ronda/runtime/core/cuda/launch.cuh>
#include <ronda/runtime/core/cuda/stream.hpp>

namespace ronda::cudnn {

using cuda::handle_of;

void launch(Stream& stream, std::int64_t count, const AddBias& body) { cuda::for_each(handle_of(stream), count, body); }
void launch(Stream& stream, std::int64_t count, const Relu& body) { cuda::for_each(handle_of(stream), count, body); }
void launch(Stream& stream, std::int64_t count, const ReluGradient& body) {
  cuda::for_each(handle_of(stream), count, body);
}
void launch(Stream& stream, std::int64_t count, const Pool& body) { cuda::for_each(handle_of(stream), count, body); }
void launch(Stream& stream, std::int64_t count, const PoolGradient& body) {
  cuda::for_each(handle_of(stream), count, body);
}
void launch(Stream& stream, std::int64_t rows, const SoftmaxRow& body) {
  cuda::for_each_by_warp(handle_of(stream), rows, body);
}
void launch(Stream& stream, const SumLosses& body) { cuda::for_each_by_warp(handle_of(stream), 1, body); }

void sum_columns(Stream& stream, const float* x, std::int64_t rows, std::int64_t columns, float* scratch, float* sums) {
  const std::int64_t chunks = column_chunks(rows, columns);
  cuda::for_each(handle_of(stream), chunks * columns, SumRows{x, scratch, rows, columns, chunks});
  cuda::for_each(handle_of(stream), columns, SumRows{scratch, sums, chunks, columns, 1});
}

}  // namespace ronda::cudnn
