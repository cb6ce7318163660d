#include <ronda/collectives/host/algorithms/packing.hpp>

namespace ronda {

Packing::Packing(Elements data, const Wire& wire, std::size_t residuals) : data_(data), wire_(wire) {
  const std::size_t bytes = compressed() ? wire_bytes(wire_.compression, data_.count) : data_.bytes().size();
  room_ = Buffer::host(bytes);
  if (compressed()) image_ = Buffer::host(bytes);
  if (keeps_lost(wire_.compression)) feedback_ = ErrorFeedback(residuals * data_.count);
}

std::span<const std::byte> Packing::pack(Range range, std::size_t time, int packer) {
  const std::span<std::byte> packed = image(range);
  if (!compressed() || range.size() == 0) return packed;
  const Noise noise = feedback_.noise(wire_.noise, packer).at(time).at(range.begin);
  encode_and_keep(wire_.compression, values(range), feedback_.lost(time * data_.count + range.begin), noise,
                  packed.data());
  return packed;
}

std::span<std::byte> Packing::image(Range range) const noexcept {
  if (!compressed()) return data_.part(range).bytes();
  const std::size_t begin = wire_bytes(wire_.compression, range.begin);
  return {image_.data() + begin, wire_bytes(wire_.compression, range.end) - begin};
}

void Packing::unpack(Range range) {
  if (compressed() && range.size() > 0) decode(wire_.compression, image(range).data(), values(range));
}

std::span<std::byte> Packing::room(Range range) const noexcept { return {room_.data(), image(range).size()}; }

void Packing::combine(ReduceOp op, Range range) {
  if (range.size() == 0) return;
  if (compressed())
    decode_and_add(wire_.compression, room_.data(), values(range));
  else
    ronda::combine(op, data_.part(range), room_.data());
}

std::span<float> Packing::values(Range range) const noexcept {
  return {reinterpret_cast<float*>(data_.data) + range.begin, range.size()};
}

}  // namespace ronda
