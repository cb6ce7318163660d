#include <ronda/core/error.hpp>
#include <ronda/runtime/strategy/replica/platform.hpp>

namespace ronda {

Platform Platform::completed(int threads) const {
  Platform whole = *this;
  if (!whole.device.context) whole.device = ComputeDevice::on(make_cpu_context(threads));
  const bool on_host = whole.device.context->device().kind == DeviceKind::cpu;
  if (!whole.primitives && !on_host) throw LogicError("a strategy on a GPU needs the GPU's primitives");
  if (!whole.primitives) whole.primitives = make_onednn_primitives(threads);
  if (!whole.make_updater) whole.make_updater = on_host ? make_host_updater : make_cuda_updater;
  return whole;
}

}  // namespace ronda
