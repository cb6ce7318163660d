#pragma once
#include <string>

namespace ronda {

/// Whether the host of this name has this address of IPv4 or IPv6, as this machine finds it. No where `address` is
/// none, or the name is not known here. Takes as long as asking for the name.
[[nodiscard]] bool has_address(const std::string& host, const std::string& address);

}  // namespace ronda
