#include <ronda/core/state_piece.hpp>

#include <algorithm>
#include <vector>

namespace ronda {

void from_file(const StatePiece& piece, std::span<const float> file) {
  if (piece.count == 0) return;
  if (piece.slice) {
    std::vector<float> taken(piece.slice->slices.count(piece.slice->part));
    piece.slice->slices.take(file, piece.slice->part, taken);
    return from_file(piece.slice->state, taken);
  }
  if (!piece.whole.tensor.empty()) return from_file(piece.whole, file);
  State whole = piece.whole;
  std::vector<float> stored(static_cast<std::size_t>(whole.tensor.desc().padded_count()));
  whole.tensor = Tensor(whole.tensor.desc(), stored.data());
  from_file(whole, file);
  std::copy_n(stored.begin() + static_cast<std::ptrdiff_t>(piece.first), piece.count, piece.elements);
}

}  // namespace ronda
