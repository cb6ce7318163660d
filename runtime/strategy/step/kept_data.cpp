#include <ronda/core/error.hpp>
#include <ronda/runtime/strategy/step/kept_data.hpp>

#include <algorithm>
#include <string>

namespace ronda {
namespace {

/// Empty: there is room on this rank's device, which so many ranks share.
std::string why_no_room(std::size_t bytes, DeviceContext& context, std::size_t sharers,
                        const KeptDataOptions& options) {
  if (bytes == 0) return "a dataset that does not say how it is stored";
  const std::size_t free = context.free_bytes() / sharers;
  const auto most = static_cast<std::size_t>(static_cast<double>(free) * options.share);
  if (bytes > most) return human_bytes(bytes) + " of it, and " + human_bytes(free) + " free on its device";
  if (options.memory_left && bytes > *options.memory_left)
    return human_bytes(bytes) + " of it, which is beyond the limit beside the model";
  return {};
}

}  // namespace

std::size_t keep_on_devices(Communicator& communicator, const ComputeDevice& device, StepQueue& queue,
                            std::span<const Dataset* const> datasets, const GatherRows& gather, KeptDataOptions options,
                            EventSink& sink) {
  if (device.context->device().kind == DeviceKind::cpu) return 0;
  const std::string mine = device.context->identity();
  const auto devices = communicator.gather_texts(mine);
  const auto sharers = static_cast<std::size_t>(std::ranges::count(devices, mine));
  std::size_t kept = 0;
  for (const Dataset* data : datasets) {
    const std::size_t bytes = queue.bytes_to_keep(*data);
    const auto reasons = communicator.gather_texts(why_no_room(bytes, *device.context, sharers, options));
    const auto reason = std::ranges::find_if(reasons, [](const std::string& each) { return !each.empty(); });
    if (reason != reasons.end()) {
      sink.on_note("data stays on the host: rank " + std::to_string(reason - reasons.begin()) + " has " + *reason);
      continue;
    }
    agree(communicator, [&] { queue.keep(*data, gather); });
    kept += bytes;
    if (options.memory_left) *options.memory_left -= bytes;
  }
  return kept;
}

}  // namespace ronda
