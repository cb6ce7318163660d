#pragma once
#include <memory>
#include <utility>

#include <ronda/core/device_context.hpp>

namespace ronda {

/// A rank's device and the streams that communication has to itself, ahead of those that compute: neither these nor one
/// another hold them up.
struct DeviceLanes {
  explicit DeviceLanes(std::shared_ptr<DeviceContext> device)
      : context(std::move(device)),
        collectives(context->make_stream(StreamPriority::high)),
        to_host(context->make_stream(StreamPriority::high)),
        to_device(context->make_stream(StreamPriority::high)) {}

  std::shared_ptr<DeviceContext> context;
  std::unique_ptr<Stream> collectives, to_host, to_device;
};

}  // namespace ronda
