#include <ronda/core/error.hpp>
#include <ronda/runtime/strategy/replica/platform.hpp>

#include <algorithm>

namespace ronda {
namespace {

DeviceSurvey one_processor() { return {.devices = 1}; }
std::shared_ptr<DeviceContext> processor(int /*number*/, int threads) { return make_cpu_context(threads); }
std::shared_ptr<Primitives> onednn(const ComputeDevice& /*device*/, const PrimitivesRequest& request) {
  return make_onednn_primitives(request.threads, request.dtype);
}

DeviceSurvey gpus() {
  const GpuSurvey found = find_gpus();
  return {.built = found.built, .devices = found.gpus.size(), .reason = found.reason};
}
std::shared_ptr<DeviceContext> gpu(int number, int /*threads*/) { return make_cuda_context(number); }
std::shared_ptr<Primitives> cudnn(const ComputeDevice& device, const PrimitivesRequest& request) {
  return make_cudnn_primitives(*device.context, *device.stream, request.engines);
}

}  // namespace

std::span<const PlatformRow> platform_rows() {
  static const PlatformRow rows[] = {
      {DeviceKind::cpu, "cpu", one_processor, processor, onednn, make_host_updater, {}},
      {DeviceKind::cuda, "cuda", gpus, gpu, cudnn, make_cuda_updater, cuda_gather},
  };
  return rows;
}

const PlatformRow& platform_row(DeviceKind kind) {
  return *std::ranges::find(platform_rows(), kind, &PlatformRow::kind);
}

Platform PlatformRow::make(int number, const PrimitivesRequest& request) const {
  const ComputeDevice device = ComputeDevice::on(context(number, request.threads));
  return {device, primitives(device, request), make_updater, gather};
}

Platform Platform::completed(int threads) const {
  Platform whole = *this;
  if (!whole.device.context) whole.device = ComputeDevice::on(make_cpu_context(threads));
  const PlatformRow& row = platform_row(whole.device.context->device().kind);
  if (!whole.primitives && row.kind != DeviceKind::cpu)
    throw LogicError("a strategy on a GPU needs the GPU's primitives");
  if (!whole.primitives) whole.primitives = row.primitives(whole.device, {.threads = threads});
  if (!whole.make_updater) whole.make_updater = row.make_updater;
  if (!whole.gather) whole.gather = row.gather;
  return whole;
}

}  // namespace ronda
