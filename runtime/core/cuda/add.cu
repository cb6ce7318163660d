#include <ronda/runtime/core/cuda/add.hpp>
#include <ronda/runtime/core/cuda/launch.cuh>
#include <ronda/runtime/core/cuda/stream.hpp>

namespace ronda::cuda {
namespace {

struct Add {
  const float* from;
  float* to;
  __device__ void operator()(std::int64_t i) const { to[i] += from[i]; }
};

}  // namespace

void add(const float* from, float* to, std::size_t count, Stream& stream) {
  for_each(handle_of(stream), static_cast<std::int64_t>(count), Add{from, to});
}

}  // namespace ronda::cuda
