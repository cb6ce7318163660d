#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <ronda/runtime/trainer/host_addresses.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

namespace ronda {
namespace {

bool is_loopback(const sockaddr& address) {
  if (address.sa_family == AF_INET)
    return ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr) >> 24U == 127;
  const in6_addr& number = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&number) || (IN6_IS_ADDR_V4MAPPED(&number) && number.s6_addr[12] == 127);
}

struct Found {
  std::set<std::string> addresses = {};  ///< without loopback addresses
  bool loopback = false;                 ///< there was one
};

/// In the form that getnameinfo gives all of one family.
void add(const sockaddr* address, Found& found) {
  if (address == nullptr || (address->sa_family != AF_INET && address->sa_family != AF_INET6)) return;
  if (is_loopback(*address)) {
    found.loopback = true;
    return;
  }
  const auto bytes = static_cast<socklen_t>(address->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
  std::array<char, NI_MAXHOST> text{};
  if (getnameinfo(address, bytes, text.data(), NI_MAXHOST, nullptr, 0, NI_NUMERICHOST) == 0)
    found.addresses.insert(text.data());
}

/// Nothing where the name is not known.
std::optional<Found> find(const std::string& name, int flags) {
  addrinfo wanted{};
  wanted.ai_flags = flags;
  wanted.ai_socktype = SOCK_STREAM;  // each once
  addrinfo* first = nullptr;
  if (getaddrinfo(name.c_str(), nullptr, &wanted, &first) != 0) return std::nullopt;
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> all(first, freeaddrinfo);
  Found found;
  for (const addrinfo* one = first; one != nullptr; one = one->ai_next) add(one->ai_addr, found);
  return found;
}

Found of_interfaces() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> all(first, freeifaddrs);
  Found found;
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) add(one->ifa_addr, found);
  return found;
}

}  // namespace

bool HostAddresses::has(const std::string& host, const std::string& address) {
  const auto wanted = find(address, AI_NUMERICHOST);
  if (!wanted || wanted->addresses.empty()) return false;
  const auto [known, is_new] = known_.try_emplace(host);
  if (is_new) known->second = find(host, 0).value_or(Found()).addresses;
  return known->second.contains(*wanted->addresses.begin());
}

bool is_loopback(const std::string& address) {
  const auto found = find(address, AI_NUMERICHOST);
  return found && found->loopback;
}

bool is_this_host(const std::string& host) {
  const auto number = find(host, AI_NUMERICHOST);
  const auto found = number ? number : find(host, 0);
  if (!found) return false;
  if (!number && found->loopback) return true;
  const Found own = of_interfaces();
  return std::ranges::any_of(found->addresses,
                             [&](const std::string& address) { return own.addresses.contains(address); });
}

}  // namespace ronda
