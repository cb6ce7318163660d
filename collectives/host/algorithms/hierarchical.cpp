#include <ronda/collectives/host/algorithms/hierarchical.hpp>
#include <ronda/collectives/host/algorithms/make_ring.hpp>

#include <cstring>

namespace ronda {

Hierarchical::Hierarchical(NodeCopies copies, const Reduction& reduction, int slices, std::unique_ptr<Transport> across,
                           const Wire& wire)
    : copies_(std::move(copies)),
      barrier_(copies_.lines, copies_.rank, copies_.ranks),
      in_node_(reduction.unfinished()) {
  if (across == nullptr) return;
  slice_ = copies_.part(static_cast<std::size_t>(copies_.rank), static_cast<std::size_t>(slices));
  copies_.touch(slice_);
  const Elements own{copies_.data[static_cast<std::size_t>(copies_.rank)], copies_.count, copies_.dtype};
  const Wire of_slice{wire.compression, wire.noise.at(static_cast<std::uint64_t>(copies_.rank))};
  across_ = make_ring(std::move(across), own.part(slice_), reduction, of_slice);
}

void Hierarchical::prepare() {
  Algorithm::prepare();
  if (across_) across_->prepare();
}

Task Hierarchical::run() {
  barrier_.arrive();
  co_await barrier_;
  if (across_) {
    std::byte* const own = copies_.data[static_cast<std::size_t>(copies_.rank)];
    reduce_copies(in_node_, copies_.data, copies_.dtype, slice_, {&own, 1});
    co_await across_->run();
    const std::size_t offset = slice_.begin * size_of(copies_.dtype), bytes = slice_.size() * size_of(copies_.dtype);
    for (std::byte* copy : copies_.data)
      if (copy != own && bytes > 0) std::memcpy(copy + offset, own + offset, bytes);
  }
  barrier_.arrive();
  co_await barrier_;
}

}  // namespace ronda
