// What a build without CUDA has in the place of the folder nccl/.
#include <ronda/collectives/nccl/nccl_library.hpp>

namespace ronda::nccl {

std::shared_ptr<Library> built_in_library() { return nullptr; }

}  // namespace ronda::nccl
