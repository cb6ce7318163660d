#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ronda/core/process.hpp>
#include <ronda/runtime/trainer/host_addresses.hpp>

#include <array>
#include <memory>

namespace ronda {
namespace {

bool is_loopback(const sockaddr& address) {
  if (address.sa_family == AF_INET)
    return ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr) >> 24U == 127;
  const in6_addr& number = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&number) || (IN6_IS_ADDR_V4MAPPED(&number) && number.s6_addr[12] == 127);
}

/// In the form that getnameinfo gives all of one family; no loopback address.
void add(const sockaddr* address, std::set<std::string>& addresses) {
  if (address == nullptr || (address->sa_family != AF_INET && address->sa_family != AF_INET6)) return;
  if (is_loopback(*address)) return;
  const auto bytes = static_cast<socklen_t>(address->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
  std::array<char, NI_MAXHOST> text{};
  if (getnameinfo(address, bytes, text.data(), NI_MAXHOST, nullptr, 0, NI_NUMERICHOST) == 0)
    addresses.insert(text.data());
}

std::set<std::string> addresses_of(const std::string& name, int flags) {
  addrinfo wanted{};
  wanted.ai_flags = flags;
  wanted.ai_socktype = SOCK_STREAM;  // each once
  addrinfo* first = nullptr;
  if (getaddrinfo(name.c_str(), nullptr, &wanted, &first) != 0) return {};
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> found(first, freeaddrinfo);
  std::set<std::string> addresses;
  for (const addrinfo* one = first; one != nullptr; one = one->ai_next) add(one->ai_addr, addresses);
  return addresses;
}

/// With its domain or without.
bool is_own_name(const std::string& host) {
  const std::string own = host_name();
  return own == host || own.starts_with(host + ".");
}

/// Of this machine's interfaces: its name may be known as a loopback address alone, as 127.0.1.1.
void add_interfaces(std::set<std::string>& addresses) {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> found(first, freeifaddrs);
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) add(one->ifa_addr, addresses);
}

}  // namespace

bool HostAddresses::has(const std::string& host, const std::string& address) {
  const auto wanted = addresses_of(address, AI_NUMERICHOST);
  if (wanted.empty()) return false;
  const auto [known, is_new] = known_.try_emplace(host);
  if (is_new) {
    known->second = addresses_of(host, 0);
    if (is_own_name(host)) add_interfaces(known->second);
  }
  return known->second.contains(*wanted.begin());
}

}  // namespace ronda
