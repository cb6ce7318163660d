// What a build without CUDA has in the place of the folder cuda/.
#include <ronda/core/error.hpp>
#include <ronda/data/device_dataset.hpp>

namespace ronda {

void cuda_gather(const gather::Rows&, Stream&) { throw InputError("no GPU to use: " + find_gpus().reason); }

}  // namespace ronda
