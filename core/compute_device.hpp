#pragma once
#include <memory>
#include <utility>

#include <ronda/core/device_context.hpp>

namespace ronda {

/// A device to compute on, and the stream for all its work.
struct ComputeDevice {
  std::shared_ptr<DeviceContext> context;
  std::shared_ptr<Stream> stream;

  static ComputeDevice on(std::shared_ptr<DeviceContext> context) {
    std::shared_ptr<Stream> stream = context->make_stream(StreamPriority::usual);
    return {std::move(context), std::move(stream)};
  }
  /// The processor, with one thread.
  static ComputeDevice processor() { return on(make_cpu_context(1)); }
};

}  // namespace ronda
