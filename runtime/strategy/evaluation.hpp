#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/compute_device.hpp>
#include <ronda/core/function_ref.hpp>
#include <ronda/core/host_copy.hpp>
#include <ronda/core/metric.hpp>
#include <ronda/data/loader.hpp>
#include <ronda/layers/summed_metric.hpp>
#include <ronda/runtime/strategy/control_block.hpp>
#include <ronda/runtime/strategy/replica.hpp>
#include <ronda/runtime/strategy/step_queue.hpp>

namespace ronda {

struct Evaluation {
  double loss = 0, metric = 0;            ///< exact, every sample once
  std::vector<MetricValue> metrics = {};  ///< likewise, of the metrics that were asked for
};

/// Is shown each batch with its outputs, in float32 on the host.
using SeeOutputs = std::function<void(const Batch& batch, const Tensor& outputs)>;

/// What a rank has of a batch's outputs.
struct Outputs {
  const Batch& here;               ///< the batch where the model computes
  const Tensor* tensor = nullptr;  ///< null: another rank has them
};

/// How an epoch is evaluated.
struct EvaluationParts {
  Communicator& communicator;
  const ComputeDevice& device;
  const Shape& outputs;  ///< of the model, for a batch
  ControlBlock& sums;    ///< where `compute` adds the loss
  HostCopy& host;
  const SeeOutputs& see;
  const Metrics& metrics;
};

/// One epoch of `loader`, summed over all ranks at once, the metrics with the loss. Collective.
/// @param compute  forward, and the loss, of a batch
Evaluation evaluate(const EvaluationParts& parts, BatchLoader& loader, FunctionRef<Outputs(const Batch&)> compute);

/// The same, forward only, of a replica.
/// @param updates  of the model so far
/// @param sums     scratch
Evaluation evaluate(Replica& replica, StepQueue& queue, Communicator& communicator, BatchLoader& loader,
                    std::uint64_t updates, ControlBlock& sums, HostCopy& host, const SeeOutputs& see,
                    const Metrics& metrics);

/// Makes what a model keeps with Scope::averaged the mean over the ranks, the same bits on all. Equal numbers stay as
/// they are, to the bit. Collective, except on one rank.
/// @param computing  of the ranks that compute; empty where this one does not: the mean is over these, and the others
///                   take it, and what these have in common
/// @param has_samples  of this rank, in a full step; the states of a rank without samples never move: it takes the mean
void average_states(const Replica& replica, Communicator& communicator, const Shard& computing, bool has_samples);
/// The same for ranks that do not compute alone: the others keep their own. Collective, if there are such ranks.
void give_states(const Replica& replica, Communicator& communicator, const Shard& computing, bool has_samples);

}  // namespace ronda
