#pragma once
#include <cstddef>
#include <vector>

#include <ronda/optim/device_groups.hpp>
#include <ronda/optim/device_update.hpp>

namespace ronda::test {

/// The update as a GPU does it, run on the host: what its kernels do, call by call.
class HostUpdate {
 public:
  /// As make_cuda_update. `outcome` outlives this object.
  HostUpdate(const Optimizer& optimizer, const OptimizerBindings& bindings, const LayerArenas& layers,
             std::size_t count, const DeviceUpdateOptions& options, DeviceOutcome& outcome);
  HostUpdate(const HostUpdate&) = delete;

  void step(const StepControl& total);
  void round_values();

 private:
  template <Number T>
  void sum_squares();
  template <Number T>
  void update();

  std::int64_t count_;
  OptimizerBindings bindings_;
  LayerArenas layers_;
  DeviceGroups groups_;
  std::vector<double> rates_;
  std::vector<rules::Scalars> scalars_;
  std::vector<double> sums_;
  bool norm_asked_;
  device_update::Decide decide_;
};

}  // namespace ronda::test
