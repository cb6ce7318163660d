#pragma once
#include <map>
#include <set>
#include <string>

namespace ronda {

/// IPv4 and IPv6 addresses of hosts, as this machine resolves their names. Loopback addresses are ignored: they mean
/// another host on each machine. Each name is resolved only once.
class HostAddresses {
 public:
  /// True if `host` resolves to `address`; false if `address` is invalid or the name is unknown. May wait for name
  /// resolution.
  [[nodiscard]] bool has(const std::string& host, const std::string& address);

 private:
  std::map<std::string, std::set<std::string>> known_;  ///< by host
};

/// True if a numeric address is a loopback address.
[[nodiscard]] bool is_loopback(const std::string& address);

/// True if `host` means this machine: an address of one of its interfaces, except loopback addresses, which every
/// machine has; or a name that resolves to such an address, or to a loopback address, as in this machine's /etc/hosts.
/// May wait for name resolution.
[[nodiscard]] bool is_this_host(const std::string& host);

}  // namespace ronda
