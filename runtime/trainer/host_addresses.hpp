#pragma once
#include <map>
#include <set>
#include <string>

namespace ronda {

/// Addresses of hosts, of IPv4 and IPv6, as this machine finds them by the host's name. A loopback address is nobody's:
/// it means another host on each. A name is asked for once.
class HostAddresses {
 public:
  /// No where `address` is none, or the name is not known here. Takes as long as asking for the name.
  [[nodiscard]] bool has(const std::string& host, const std::string& address);

 private:
  std::map<std::string, std::set<std::string>> known_;  ///< by host
};

/// Whether an address in numbers is a loopback address.
[[nodiscard]] bool is_loopback(const std::string& address);

/// Whether this machine takes `host` for itself: an address of one of its interfaces, but for loopback addresses, which
/// each machine has; or a name that it finds such an address for, or a loopback address, as its own table of names may
/// have (/etc/hosts). Takes as long as asking for the name.
[[nodiscard]] bool is_this_host(const std::string& host);

}  // namespace ronda
