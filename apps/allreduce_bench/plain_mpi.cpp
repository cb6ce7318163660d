// MPI's own names for our types and operations, and its allreduce of them.
#include "allreduce_bench/plain_mpi.hpp"

#include <mpi.h>

#include <algorithm>

#include <ronda/core/error.hpp>

namespace ronda::apps {
namespace {

MPI_Datatype mpi_type(DType dtype) {
  switch (dtype) {
    case DType::float32: return MPI_FLOAT;
    case DType::float64: return MPI_DOUBLE;
    case DType::int8: return MPI_INT8_T;
    case DType::uint8: return MPI_UINT8_T;
    case DType::int32: return MPI_INT32_T;
    case DType::int64: return MPI_INT64_T;
    case DType::float16:
    case DType::bfloat16: break;
  }
  throw InputError("MPI has no 16-bit floating point: --compare mpi takes another --dtype");
}

MPI_Op mpi_operation(ReduceOp op) {
  switch (op) {
    case ReduceOp::minimum: return MPI_MIN;
    case ReduceOp::maximum: return MPI_MAX;
    case ReduceOp::product: return MPI_PROD;
    default: return MPI_SUM;
  }
}

}  // namespace

void require_known_to_mpi(DType dtype) { static_cast<void>(mpi_type(dtype)); }

void mpi_allreduce(std::byte* data, std::size_t count, DType dtype, ReduceOp op) {
  constexpr std::size_t most = std::size_t{1} << 30;  // elements a call, which counts in int
  for (std::size_t at = 0; at < count; at += most)
    MPI_Allreduce(MPI_IN_PLACE, data + at * size_of(dtype), static_cast<int>(std::min(most, count - at)),
                  mpi_type(dtype), mpi_operation(op), MPI_COMM_WORLD);
}

}  // namespace ronda::apps
