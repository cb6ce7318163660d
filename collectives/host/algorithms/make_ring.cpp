#include <ronda/collectives/host/algorithms/compressed_ring.hpp>
#include <ronda/collectives/host/algorithms/direct_exchange.hpp>
#include <ronda/collectives/host/algorithms/grid_exchange.hpp>
#include <ronda/collectives/host/algorithms/make_ring.hpp>
#include <ronda/collectives/host/algorithms/ring.hpp>

namespace ronda {

std::unique_ptr<Algorithm> make_ring(std::unique_ptr<Transport> transport, Elements data, const Reduction& reduction,
                                     const Wire& wire) {
  switch (wire.compression) {
    case Compression::bf16:
    case Compression::fp16: return std::make_unique<CompressedRing>(std::move(transport), data, reduction, wire);
    case Compression::int8:
      if (const int columns = GridExchange::columns_for(transport->size()); columns > 1)
        return std::make_unique<GridExchange>(std::move(transport), data, reduction, wire, columns);
      return std::make_unique<DirectExchange>(std::move(transport), data, reduction, wire);
    case Compression::none:
    case Compression::automatic: break;
  }
  return std::make_unique<Ring>(std::move(transport), data, reduction);
}

}  // namespace ronda
