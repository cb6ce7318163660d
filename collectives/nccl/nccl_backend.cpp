#include <ronda/collectives/members/spec_check.hpp>
#include <ronda/collectives/nccl/nccl_backend.hpp>
#include <ronda/collectives/nccl/nccl_plan.hpp>
#include <ronda/core/error.hpp>

#include <algorithm>

namespace ronda::nccl {

std::unique_ptr<Collective> NcclBackend::plan(const CollectiveSpec& spec, bool often) {
  if (const auto* allreduce = std::get_if<AllreduceSpec>(&spec)) return planned(*allreduce, often);
  if (const auto* broadcast = std::get_if<BroadcastSpec>(&spec)) return nccl::plan(clique_, *broadcast, members_);
  if (const auto* allgather = std::get_if<AllgatherSpec>(&spec))
    return nccl::plan(clique_, *allgather, ranges_of(allgather->counts), members_);
  if (const auto* one = std::get_if<ReduceScatterSpec>(&spec); one && !loses_nan(one->op, one->all.dtype()))
    return nccl::plan(clique_, *one, ranges_of(one->counts), members_);
  return staged_.plan(spec, often);
}

std::unique_ptr<Collective> NcclBackend::planned(const AllreduceSpec& spec, bool often) {
  require_fitting(spec.algorithm, DeviceKind::cuda);
  const bool passes_over_nan =
      std::ranges::any_of(spec.tensors, [&](const Tensor& tensor) { return loses_nan(spec.op, tensor.dtype()); });
  if (spec.algorithm == AllreduceAlgorithm::staged ||
      (spec.algorithm == AllreduceAlgorithm::automatic && passes_over_nan))
    return staged_.plan(spec, often);
  if (spec.compression != Compression::none && spec.compression != Compression::automatic)
    throw InputError(setting("compression", name_of(spec.compression)) + ": NCCL sends gradients as they are; take " +
                     setting("compression", "none") + " or auto, or " + setting("allreduce", "staged"));
  return nccl::plan(clique_, spec, members_);
}

}  // namespace ronda::nccl
