#pragma once
#include <memory>

#include <ronda/collectives/host/engine/algorithm.hpp>
#include <ronda/collectives/host/reduction.hpp>
#include <ronda/collectives/host/transport/transport.hpp>
#include <ronda/collectives/host/wire_format.hpp>

namespace ronda {

/// An allreduce with the bytes of a ring, 2(n-1)/n of the data's on the wire: a Ring, a CompressedRing, or, where
/// what rounding loses is kept, what make_direct makes.
[[nodiscard]] std::unique_ptr<Algorithm> make_ring(std::unique_ptr<Transport> transport, Elements data,
                                                   const Reduction& reduction, const Wire& wire);

}  // namespace ronda
