#include <ronda/collectives/host/algorithms/sparse_allreduce.hpp>
#include <ronda/core/floats.hpp>

#include <algorithm>
#include <cstring>
#include <tuple>

namespace ronda {
SparseAllreduce::SparseAllreduce(std::unique_ptr<Transport> transport, float* table, std::size_t width,
                                 TouchedRows& touched, std::size_t piece_bytes)
    : transport_(std::move(transport)), table_(table), width_(width), touched_(touched) {
  const auto ranks = static_cast<std::size_t>(transport_->size());
  const std::size_t rows = touched.capacity();
  rows_a_piece_ = std::clamp<std::size_t>(piece_bytes / bytes_of(1), 1, std::max<std::size_t>(rows, 1));
  if (ranks == 1) return;  // nothing moves
  rows_.resize(rows);
  begins_.resize(ranks + 1);
  mine_.reserve(rows / ranks + 1);
  outgoing_counts_.resize(ranks);
  incoming_counts_.resize(ranks);
  counts_.reserve(2 * ranks);
  pieces_.reserve(2 * (rows / rows_a_piece_ + 2 * ranks));
  requests_.resize(under_way);
  slots_ = Buffer::host(under_way * slot_bytes());
}

Task SparseAllreduce::run() {
  if (transport_->size() == 1) co_return;
  sort_by_owner();
  for (const Half half : {Half::sum, Half::hand_out}) {
    tell_counts(half);
    for (Request& count : counts_) co_await count;
    cut(half);
    for (std::size_t i = 0; i < std::min(under_way, pieces_.size()); ++i) start(i);
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      Request& oldest = requests_[i % under_way];
      co_await oldest;
      if (!pieces_[i].outgoing) half == Half::sum ? add(pieces_[i], slot_of(i)) : store(pieces_[i], slot_of(i));
      if (i + under_way < pieces_.size()) start(i + under_way);
    }
  }
  touched_.assign(std::span(rows_).first(begins_.back()));
}

void SparseAllreduce::sort_by_owner() {
  std::ranges::fill(begins_, 0);
  for (const std::int32_t row : touched_.rows()) ++begins_[owner_of(row) + 1];
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    outgoing_counts_[rank] = static_cast<std::uint32_t>(begins_[rank + 1]);
    begins_[rank + 1] += begins_[rank];
  }
  for (const std::int32_t row : touched_.rows()) rows_[begins_[owner_of(row)]++] = row;
  for (std::size_t rank = 0; rank < ranks(); ++rank) begins_[rank] -= outgoing_counts_[rank];
  mine_.assign(rows_.begin() + static_cast<std::ptrdiff_t>(begins_[me()]),
               rows_.begin() + static_cast<std::ptrdiff_t>(begins_[me() + 1]));
}

void SparseAllreduce::tell_counts(Half half) {
  if (half == Half::hand_out) std::ranges::fill(outgoing_counts_, static_cast<std::uint32_t>(mine_.size()));
  const auto message = [](std::vector<std::uint32_t>& counts, int peer) {
    return std::as_writable_bytes(std::span(&counts[static_cast<std::size_t>(peer)], 1));
  };
  counts_.clear();
  for (int step = 1; step < transport_->size(); ++step) {
    counts_.push_back(transport_->receive(below(step), message(incoming_counts_, below(step))));
    counts_.push_back(transport_->send(above(step), message(outgoing_counts_, above(step))));
    sent_ += sizeof(std::uint32_t);
  }
}

/// Where the rows of each owner go.
void SparseAllreduce::line_up_owners() {
  incoming_counts_[me()] = outgoing_counts_[me()];
  for (std::size_t rank = 0; rank < ranks(); ++rank) begins_[rank + 1] = begins_[rank] + incoming_counts_[rank];
  std::ranges::copy(mine_, rows_.begin() + static_cast<std::ptrdiff_t>(begins_[me()]));
}

void SparseAllreduce::cut(Half half) {
  if (half == Half::hand_out) line_up_owners();
  pieces_.clear();
  for (int step = 1; step < transport_->size(); ++step) {
    const auto to = static_cast<std::size_t>(above(step)), from = static_cast<std::size_t>(below(step));
    add_pieces(step, false, below(step), begins_[from], incoming_counts_[from]);
    add_pieces(step, true, above(step), begins_[half == Half::sum ? to : me()], outgoing_counts_[to]);
  }
  std::ranges::sort(pieces_, {},
                    [](const Piece& piece) { return std::tuple(piece.step, piece.index, piece.outgoing); });
}

void SparseAllreduce::add_pieces(int step, bool outgoing, int peer, std::size_t first, std::size_t count) {
  for (std::size_t at = 0, index = 0; at < count; at += rows_a_piece_, ++index)
    pieces_.push_back({step, index, outgoing, peer, first + at, std::min(rows_a_piece_, count - at)});
}

void SparseAllreduce::start(std::size_t index) {
  const Piece& piece = pieces_[index];
  const std::span<std::byte> message(slot_of(index), bytes_of(piece.count));
  if (piece.outgoing) {
    pack(piece, message.data());
    sent_ += message.size();
  }
  requests_[index % under_way] =
      piece.outgoing ? transport_->send(piece.peer, message) : transport_->receive(piece.peer, message);
}

// ---- rows in a message: their numbers, then their values ------------------------------------------------------------

void SparseAllreduce::pack(const Piece& piece, std::byte* slot) const {
  const auto rows = std::span(rows_).subspan(piece.first, piece.count);
  std::memcpy(slot, rows.data(), rows.size_bytes());
  auto* values = reinterpret_cast<float*>(slot + rows.size_bytes());
  for (const std::int32_t row : rows) values = std::copy_n(values_of(row), width_, values);
}

void SparseAllreduce::add(const Piece& piece, const std::byte* slot) {
  const std::span rows(reinterpret_cast<const std::int32_t*>(slot), piece.count);
  const auto* values = reinterpret_cast<const float*>(slot + rows.size_bytes());
  for (const std::int32_t row : rows) {
    if (touched_.add(row)) mine_.push_back(row);  // its values were zero
    add_floats(values, values_of(row), width_);
    values += width_;
  }
}

void SparseAllreduce::store(const Piece& piece, const std::byte* slot) {
  const std::span rows(reinterpret_cast<const std::int32_t*>(slot), piece.count);
  const auto* values = reinterpret_cast<const float*>(slot + rows.size_bytes());
  std::ranges::copy(rows, rows_.begin() + static_cast<std::ptrdiff_t>(piece.first));
  for (const std::int32_t row : rows) {
    std::copy_n(values, width_, values_of(row));
    values += width_;
  }
}

std::size_t SparseAllreduce::memory() const noexcept {
  return slots_.bytes() + (rows_.size() + mine_.capacity()) * sizeof(std::int32_t);
}

}  // namespace ronda
