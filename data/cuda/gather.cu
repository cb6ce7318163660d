#include <ronda/data/device_dataset.hpp>
#include <ronda/runtime/core/cuda/launch.cuh>
#include <ronda/runtime/core/cuda/stream.hpp>

namespace ronda {

void cuda_gather(const gather::Rows& rows, Stream& stream) {
  cuda::for_each(cuda::handle_of(stream), rows.count(), rows);
}

}  // namespace ronda
