#pragma once
#include <memory>

#include <ronda/collectives/host/engine/algorithm.hpp>
#include <ronda/collectives/host/reduction.hpp>
#include <ronda/collectives/host/transport/transport.hpp>
#include <ronda/collectives/host/wire_format.hpp>

namespace ronda {

/// An allreduce in two latencies: a DirectExchange, or between many ranks a GridExchange, which has four.
[[nodiscard]] std::unique_ptr<Algorithm> make_direct(std::unique_ptr<Transport> transport, Elements data,
                                                     const Reduction& reduction, const Wire& wire);

/// Of a compressed number, at most: by the sender and by the owner, in a grid in its rows and in its columns.
[[nodiscard]] int direct_roundings(int ranks);

}  // namespace ronda
