#pragma once
#include <cstdint>
#include <string>

namespace ronda {

enum class DeviceKind : std::uint8_t { cpu, cuda };

/// The device that holds a tensor or runs an operation.
struct Device {
  DeviceKind kind = DeviceKind::cpu;
  int index = 0;

  [[nodiscard]] std::string text() const { return kind == DeviceKind::cpu ? "cpu" : "cuda:" + std::to_string(index); }
  bool operator==(const Device&) const = default;
};

}  // namespace ronda
