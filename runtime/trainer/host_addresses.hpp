#pragma once
#include <map>
#include <set>
#include <string>

namespace ronda {

/// Addresses of hosts, of IPv4 and IPv6, as this machine finds them: by the host's name, and of this machine also those
/// of its interfaces. A loopback address is nobody's: it means another host on each. A name is asked for once.
class HostAddresses {
 public:
  /// No where `address` is none, or the name is not known here. Takes as long as asking for the name.
  [[nodiscard]] bool has(const std::string& host, const std::string& address);

 private:
  std::map<std::string, std::set<std::string>> known_;  ///< by host
};

}  // namespace ronda
