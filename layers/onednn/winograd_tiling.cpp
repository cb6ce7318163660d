#include <ronda/layers/onednn/winograd_tiling.hpp>

namespace ronda::onednn {
namespace {

std::int64_t vectors_of(std::int64_t outputs) {
  for (const std::int64_t vectors : {4, 3, 2})
    if (outputs % (vectors * vector) == 0) return vectors;
  return 1;
}

constexpr std::int64_t tiles_across(std::int64_t extent) {
  return (extent + winograd::tile_size - 1) / winograd::tile_size;
}

}  // namespace

WinogradTiling::WinogradTiling(const Images& source, const Images& destination, std::int64_t padding_above,
                               std::int64_t padding_left, int threads)
    : from(source),
      to(destination),
      padding_down(padding_above),
      padding_right(padding_left),
      down(tiles_across(to.height)),
      right(tiles_across(to.width)),
      inputs(from.groups * from.lanes),
      outputs(to.groups * to.lanes),
      vectors(vectors_of(outputs)),
      input_vectors(vectors_of(inputs)) {
  constexpr std::int64_t usual = 48, most = 96;
  in_one_block = threads == 1 && tiles() <= most;
  block = in_one_block ? tiles() : usual;
}

std::int64_t WinogradTiling::piece_floats() const { return winograd::elements * chunk() * width(); }
std::int64_t WinogradTiling::weight_floats() const { return piece_floats() * (in_one_block ? 1 : pieces()); }

}  // namespace ronda::onednn
