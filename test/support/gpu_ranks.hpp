#pragma once
#include <cstdlib>
#include <string>
#include <utility>

#include "support/ranks.hpp"

namespace ronda::test {

/// Several ranks on one GPU, which NCCL takes where each calls its host by another name and sockets of this machine are
/// all the network there is. Before NCCL is first used.
inline void pretend_hosts() {
  const std::string name = "rank" + std::to_string(world().rank());
  ::setenv("NCCL_HOSTID", name.c_str(), 1);
  for (const auto& [variable, value] :
       {std::pair("NCCL_NET", "Socket"), std::pair("NCCL_SOCKET_IFNAME", "lo"), std::pair("NCCL_ALGO", "Ring"),
        std::pair("NCCL_PROTO", "Simple"), std::pair("NCCL_MAX_CTAS", "2"), std::pair("NCCL_NVLS_ENABLE", "0"),
        std::pair("NCCL_RAS_ENABLE", "0")})
    ::setenv(variable, value, 0);
}

}  // namespace ronda::test
