#include <ronda/core/cuda/launch.cuh>
#include <ronda/core/cuda/stream.hpp>
#include <ronda/data/device_dataset.hpp>

namespace ronda {

void cuda_gather(const gather::Rows& rows, Stream& stream) {
  cuda::for_each(cuda::handle_of(stream), rows.count(), rows);
}

}  // namespace ronda
