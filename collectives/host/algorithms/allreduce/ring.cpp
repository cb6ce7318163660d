#include <ronda/collectives/host/algorithms/allreduce/direct.hpp>
#include <ronda/collectives/host/algorithms/allreduce/ring.hpp>
#include <ronda/collectives/host/algorithms/allreduce_row.hpp>
#include <ronda/collectives/host/algorithms/compressed_ring.hpp>
#include <ronda/collectives/host/algorithms/ring.hpp>

namespace ronda {

std::unique_ptr<Algorithm> make_ring(std::unique_ptr<Transport> transport, Elements data, const Reduction& reduction,
                                     const Wire& wire) {
  switch (wire.compression) {
    case Compression::bf16:
    case Compression::fp16: return std::make_unique<CompressedRing>(std::move(transport), data, reduction, wire);
    case Compression::int8:
    case Compression::int4:
    case Compression::two_bit: return make_direct(std::move(transport), data, reduction, wire);
    case Compression::none:
    case Compression::automatic: break;
  }
  return std::make_unique<Ring>(std::move(transport), data, reduction);
}

// ---- the row --------------------------------------------------------------------------------------------------------

namespace {

std::optional<double> ring_seconds(const MessageTimes& times, double bytes, const MessageTimes::Packed& packed) {
  const auto around = times.way([&](int rank) { return (rank + 1) % times.ranks(); });
  return times.ring(times.ranks(), around, bytes, packed);
}

std::unique_ptr<Algorithm> make_ring_of_all(const AllreduceParts& parts) {
  return make_ring(parts.across_all(), parts.elements, parts.reduction, parts.wire);
}

}  // namespace

extern const AllreduceRow ring_row;
constinit const AllreduceRow ring_row{.algorithm = AllreduceAlgorithm::ring,
                                      .name = "ring",
                                      .help = "segmented pipelined ring over messages; any layout of ranks",
                                      .roundings = direct_roundings,
                                      .suits = always,
                                      .cost = ring_seconds,
                                      .make = make_ring_of_all};

}  // namespace ronda
