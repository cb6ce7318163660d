#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/device_context.hpp>
#include <ronda/core/function_ref.hpp>
#include <ronda/core/metric.hpp>
#include <ronda/data/loader.hpp>
#include <ronda/layers/metrics.hpp>
#include <ronda/runtime/strategy/replica/control_block.hpp>
#include <ronda/runtime/strategy/replica/replica.hpp>
#include <ronda/runtime/strategy/step/step_queue.hpp>

namespace ronda {

struct Evaluation {
  double loss = 0, metric = 0;            ///< exact: every sample counts once
  std::vector<MetricValue> metrics = {};  ///< values of the requested metrics, also exact
};

/// Callback that receives each batch with its outputs, in float32 on the host.
using SeeOutputs = std::function<void(const Batch& batch, const Tensor& outputs)>;

/// A rank's result of computing a batch.
struct Outputs {
  const Batch& here;               ///< the batch, in the memory that the model computes in
  const Tensor* tensor = nullptr;  ///< the outputs; null if another rank has them
};

/// Arguments of `evaluate`.
struct EvaluationParts {
  Communicator& communicator;
  const ComputeDevice& device;
  const Shape& outputs;  ///< shape of the model's outputs for a batch
  ControlBlock& sums;    ///< block to which `compute` adds the loss
  HostCopy& host;
  const SeeOutputs& see;
  const Metrics& metrics;
};

/// Evaluates one epoch of `loader`. Loss and metrics are summed over all ranks at once. Collective.
/// @param compute  runs the forward pass and the loss of a batch
Evaluation evaluate(const EvaluationParts& parts, BatchLoader& loader, FunctionRef<Outputs(const Batch&)> compute);

/// Replaces each layer state with Scope::averaged by its mean over the ranks, the same bits on all. Equal numbers stay
/// unchanged, to the bit. Collective, except on one rank.
/// @param computing  shard of the ranks that compute; empty on the others. The mean is over the computing ranks; the
///                   others receive it, and the states that the computing ranks have in common.
/// @param has_samples  whether this rank has samples in a full step; the states of a rank without samples never change:
///                     it receives the mean
void average_states(const Replica& replica, Communicator& communicator, const Shard& computing, bool has_samples);
/// The same, but only the ranks that do not compute take the means; the others keep their own states. Collective, if
/// there are ranks that do not compute.
void give_states(const Replica& replica, Communicator& communicator, const Shard& computing, bool has_samples);

}  // namespace ronda
