#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <ronda/runtime/trainer/host_addresses.hpp>

#include <memory>
#include <set>

namespace ronda {
namespace {

/// In the form that getnameinfo gives all of one family.
std::set<std::string> addresses_of(const std::string& name, int flags) {
  addrinfo wanted{};
  wanted.ai_flags = flags;
  wanted.ai_socktype = SOCK_STREAM;  // each once
  addrinfo* first = nullptr;
  if (getaddrinfo(name.c_str(), nullptr, &wanted, &first) != 0) return {};
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> found(first, freeaddrinfo);
  std::set<std::string> addresses;
  for (const addrinfo* one = first; one != nullptr; one = one->ai_next) {
    std::string text(NI_MAXHOST, '\0');
    if (getnameinfo(one->ai_addr, one->ai_addrlen, text.data(), NI_MAXHOST, nullptr, 0, NI_NUMERICHOST) == 0)
      addresses.insert(text.c_str());
  }
  return addresses;
}

}  // namespace

bool has_address(const std::string& host, const std::string& address) {
  const auto wanted = addresses_of(address, AI_NUMERICHOST);
  return !wanted.empty() && addresses_of(host, 0).contains(*wanted.begin());
}

}  // namespace ronda
