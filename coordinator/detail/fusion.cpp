#include <ronda/coordinator/detail/fusion.hpp>

#include <algorithm>
#include <cstring>
#include <limits>
#include <tuple>
#include <type_traits>

namespace ronda {
namespace {

template <class T>
void fill_with(std::span<std::byte> bytes, T value) {
  std::fill_n(reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T), value);
}

template <class T>
T neutral(ReduceOp op) {
  using Limits = std::numeric_limits<T>;
  switch (op) {
    case ReduceOp::product: return T{1};
    case ReduceOp::minimum: return Limits::has_infinity ? Limits::infinity() : Limits::max();
    case ReduceOp::maximum: return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    case ReduceOp::bitwise_and: return static_cast<T>(-1);
    default: return T{0};
  }
}

template <class T>
T neutral_half(ReduceOp op) {
  return to_half<T>(neutral<float>(op));
}

}  // namespace

void fill_neutral(ReduceOp op, DType dtype, std::span<std::byte> bytes) {
  switch (dtype) {
    case DType::float32: return fill_with(bytes, neutral<float>(op));
    case DType::float64: return fill_with(bytes, neutral<double>(op));
    case DType::float16: return fill_with(bytes, neutral_half<Float16>(op));
    case DType::bfloat16: return fill_with(bytes, neutral_half<BFloat16>(op));
    case DType::int8: return fill_with(bytes, neutral<std::int8_t>(op));
    case DType::uint8: return fill_with(bytes, neutral<std::uint8_t>(op));
    case DType::int32: return fill_with(bytes, neutral<std::int32_t>(op));
    case DType::int64: return fill_with(bytes, neutral<std::int64_t>(op));
  }
}

/// A broadcast is a sum of bytes to which all but the root give zeros, and so is an allgather, to each part of which
/// one rank gives more: they travel with everything else.
void TensorFusion::add(const Descriptor& descriptor, Submission* submission) {
  const bool broadcast = descriptor.kind == NamedKind::broadcast;
  const bool as_bytes = broadcast || descriptor.kind == NamedKind::allgather;
  const std::size_t first = pieces_.size();
  for (std::size_t i = 0; i < descriptor.parts.size(); ++i) {
    const auto& part = descriptor.parts[i];
    const std::size_t bytes = static_cast<std::size_t>(part.shape.count()) * size_of(part.dtype);
    if (bytes == 0) continue;
    pieces_.push_back({submission, submission == nullptr ? nullptr : submission->tensors()[i].data(), bytes,
                       as_bytes ? ReduceOp::sum : descriptor.op, as_bytes ? DType::uint8 : part.dtype,
                       submission != nullptr && (!broadcast || descriptor.root == link_.rank())});
  }
  if (submission == nullptr) return;
  submission->pieces_left = pieces_.size() - first;
  if (submission->pieces_left == 0) submission->succeed();
}

Task TensorFusion::run(std::size_t batch_bytes) {
  const auto order = [](const Piece& piece) { return std::tuple(piece.dtype, piece.op); };
  std::stable_sort(pieces_.begin(), pieces_.end(), [&](const Piece& a, const Piece& b) { return order(a) < order(b); });
  next_piece_ = next_byte_ = 0;
  int turn = 0;
  for (; next_piece_ < pieces_.size(); turn = (turn + 1) % CoordinatorLink::stages) {
    Batch& batch = batches_[turn];
    if (batch.under_way) {
      LinkOperation& reduction = link_.reduction(turn);
      co_await reduction;
      copy_out(turn);
    }
    fill(batch, std::min(batch_bytes, link_.stage(turn).size()));
    copy_in(batch, link_.stage(turn));
    const Piece& first = *batch.parts.front().piece;
    link_.start(turn, first.op, first.dtype, batch.bytes);
    batch.under_way = true;
  }
  for (int i = 0; i < CoordinatorLink::stages; ++i) {
    const int stage = (turn + i) % CoordinatorLink::stages;
    if (!batches_[stage].under_way) continue;
    LinkOperation& reduction = link_.reduction(stage);
    co_await reduction;
    copy_out(stage);
  }
  pieces_.clear();
}

void TensorFusion::fill(Batch& batch, std::size_t batch_bytes) {
  batch.parts.clear();
  batch.bytes = 0;
  const Piece& first = pieces_[next_piece_];
  while (next_piece_ < pieces_.size()) {
    const Piece& piece = pieces_[next_piece_];
    const std::size_t room = (batch_bytes - batch.bytes) / sizeof(double) * sizeof(double);
    if (piece.op != first.op || piece.dtype != first.dtype || room == 0) return;
    const std::size_t bytes = std::min(room, piece.bytes - next_byte_);
    batch.parts.push_back({&piece, next_byte_, bytes});
    batch.bytes += bytes;
    next_byte_ += bytes;
    if (next_byte_ < piece.bytes) return;
    ++next_piece_;
    next_byte_ = 0;
  }
}

void TensorFusion::copy_in(const Batch& batch, std::span<std::byte> stage) const {
  std::size_t at = 0;
  for (const Part& part : batch.parts) {
    const auto place = stage.subspan(at, part.bytes);
    if (part.piece->contributes)
      std::memcpy(place.data(), part.piece->data + part.begin, part.bytes);
    else
      fill_neutral(part.piece->op, part.piece->dtype, place);
    at += part.bytes;
  }
}

/// Hands back what a stage has reduced.
void TensorFusion::copy_out(int stage) {
  Batch& batch = batches_[stage];
  batch.under_way = false;
  const std::byte* from = link_.stage(stage).data();
  for (const Part& part : batch.parts) {
    const Piece& piece = *part.piece;
    if (piece.data != nullptr) std::memcpy(piece.data + part.begin, from, part.bytes);
    from += part.bytes;
    const bool whole = part.begin + part.bytes == piece.bytes;
    if (whole && piece.submission != nullptr && --piece.submission->pieces_left == 0) piece.submission->succeed();
  }
  bytes_done_ += batch.bytes;
  ++batches_done_;
}

}  // namespace ronda
