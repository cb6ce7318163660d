// Are the results of an allreduce right?
#pragma once
#include <cstddef>
#include <functional>

#include <ronda/collectives/communicator.hpp>
#include <ronda/collectives/compression.hpp>
#include <ronda/collectives/reduce_op.hpp>
#include <ronda/core/tensor.hpp>

namespace ronda::apps {

/// One `allreduce` of `data` (which lies on the host, and is zero afterwards) with small integers in it, and how many
/// of its results are wrong on any rank. Collective.
/// @param algorithm  its name: some round a compressed number more often than others
[[nodiscard]] std::size_t count_wrong(Communicator communicator, const Tensor& data, ReduceOp op,
                                      Compression compression, std::string_view algorithm,
                                      const std::function<void()>& allreduce);

}  // namespace ronda::apps
