#include <ronda/core/denormals.hpp>
#include <ronda/core/floats.hpp>
#include <ronda/runtime/strategy/exchange/arena_shares.hpp>
#include <ronda/runtime/strategy/parameter_server/pushed_pieces.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace ronda {
namespace {

/// Elements that one thread packs at a time; each has noise of its own, whatever number of threads there is.
constexpr std::size_t chunk_elements = 64 * granule_of(Compression::two_bit);

/// body(Range), for each chunk of [0, count).
template <class Body>
void for_each_chunk(int threads, std::size_t count, const Body& body) {
  parallel_for(
      threads, count,
      [&](Range part) {
        const DenormalScope flushing(true);
        for (std::size_t at = part.begin; at < part.end; at += chunk_elements)
          body(Range{at, std::min(at + chunk_elements, part.end)});
      },
      chunk_elements);
}

Tensor bytes_at(std::byte* place, std::size_t bytes) {
  return Tensor(std::span(reinterpret_cast<std::uint8_t*>(place), bytes));
}

float* floats_at(const Buffer& memory) { return reinterpret_cast<float*>(memory.data()); }

/// Elements of a piece: whole chunks, so that compression packs all of it by the same pattern.
std::size_t longest_piece(const Range& share, std::size_t parts) {
  if (parts == 1) return std::max<std::size_t>(share.size(), 1);
  const std::size_t least = (std::size_t{512} << 10) / sizeof(float), wanted = (share.size() + parts - 1) / parts;
  return (std::max(least, wanted) + chunk_elements - 1) / chunk_elements * chunk_elements;
}

/// What a piece takes in a buffer of several.
std::size_t room_of(Compression compression, const PushedPiece& piece) {
  return Buffer::aligned(wire_bytes(compression, piece.elements.size()));
}

}  // namespace

std::vector<FusionBuffer::Bucket> buckets_to_push(const std::vector<GradientSlot>& slots,
                                                  const FusionOptions& options) {
  auto buckets = FusionBuffer::fill(slots, options);
  for (FusionBuffer::Bucket& bucket : buckets) {
    bucket.algorithm = "push";
    bucket.compression = options.compression;
  }
  return buckets;
}

std::vector<std::string> describe_pushes(std::span<const FusionBuffer::Bucket> buckets) {
  std::vector<std::string> lines;
  for (const FusionBuffer::Bucket& bucket : buckets) {
    lines.push_back(label_of_bucket(lines.size()) + ": slots " + std::to_string(bucket.first_slot) + " to " +
                    std::to_string(bucket.end_slot) + ", " + std::to_string(bucket.bytes) +
                    " bytes, pushed to servers");
    if (bucket.compression != Compression::none) lines.back() += " as " + std::string(name_of(bucket.compression));
  }
  return lines;
}

std::string describe_roles(const Roles& roles) {
  std::string text = counted(roles.workers(), "worker") + " and " + counted(roles.servers(), "server") + ": rank";
  for (int i = 0; i < roles.servers(); ++i) text += (i == 0 ? " " : ", ") + std::to_string(roles.rank_of_server(i));
  return text;
}

std::vector<PushedPiece> cut_buckets(std::span<const FusionBuffer::Bucket> buckets, std::span<const Range> shares,
                                     std::size_t parts) {
  std::vector<PushedPiece> pieces;
  for (std::size_t bucket = 0; bucket < buckets.size(); ++bucket) {
    for (std::size_t rank = 0; rank < shares.size(); ++rank) {
      const Range part = overlap_of(elements_of(buckets[bucket]), shares[rank]);
      const std::size_t longest = longest_piece(shares[rank], parts);
      for (std::size_t at = part.begin; at < part.end; at += longest)
        pieces.push_back({bucket, static_cast<int>(rank), {at, std::min(at + longest, part.end)}});
    }
  }
  return pieces;
}

// ---- on a worker ----------------------------------------------------------------------------------------------------

PackedPieces::PackedPieces(const FusionOptions& options, int worker, const std::vector<PushedPiece>& pieces,
                           const Buffer& arena)
    : compression_(options.compression), noise_(options.seed), worker_(worker) {
  std::size_t room = 0, elements = 0;
  for (const PushedPiece& piece : pieces) room += room_of(compression_, piece);
  if (compression_ != Compression::none) wire_ = Buffer::host(room);
  std::byte* next = wire_.data();
  for (const PushedPiece& piece : pieces) {
    const Tensor gradients = floats_in(arena, piece.elements);
    const std::size_t bytes = wire_bytes(compression_, piece.elements.size());
    pieces_.push_back({gradients.as<float>(), gradients, elements});
    if (compression_ != Compression::none)
      pieces_.back().message = bytes_at(std::exchange(next, next + room_of(compression_, piece)), bytes);
    elements += piece.elements.size();
    bytes_ += bytes;
  }
  if (keeps_lost(compression_)) feedback_ = ErrorFeedback(elements);
}

void PackedPieces::pack(std::size_t piece, int threads) {
  if (compression_ == Compression::none) return;
  const auto& [gradients, message, place] = pieces_[piece];
  auto* const wire = reinterpret_cast<std::byte*>(message.data());
  const Noise noise = feedback_.noise(noise_, worker_).at(piece);
  for_each_chunk(threads, gradients.size(), [&, gradients = gradients, place = place](Range part) {
    float* const lost = feedback_.lost(place + part.begin);
    if (before_.bytes() > 0) std::copy_n(lost, part.size(), floats_at(before_) + place + part.begin);
    encode(compression_, gradients.subspan(part.begin, part.size()), lost, noise.at(part.begin),
           wire + wire_bytes(compression_, part.begin));
  });
}

void PackedPieces::keep_before() {
  if (before_.bytes() == 0) before_ = Buffer::host(feedback_.bytes());
}

/// What was lost before a push is what is lost after it, and was sent, less the gradient.
void PackedPieces::take_back(int threads) {
  if (!keeps_lost(compression_)) return;
  if (const std::size_t count = before_.bytes() / sizeof(float); count > 0) {
    parallel_for(threads, count, [&](Range part) {
      std::copy_n(floats_at(before_) + part.begin, part.size(), feedback_.lost(part.begin));
    });
    return;
  }
  for (const auto& [gradients, message, place] : pieces_) {
    const auto* const wire = reinterpret_cast<const std::byte*>(message.data());
    for_each_chunk(threads, gradients.size(), [&, gradients = gradients, place = place](Range part) {
      const std::span lost(feedback_.lost(place + part.begin), part.size());
      decode_and_add(compression_, wire + wire_bytes(compression_, part.begin), lost);
      for (std::size_t i = 0; i < lost.size(); ++i) {
        lost[i] -= gradients[part.begin + i];
        if (!std::isfinite(lost[i])) lost[i] = 0;
      }
    });
  }
}

// ---- on a server ----------------------------------------------------------------------------------------------------

ArrivingPieces::ArrivingPieces(Compression compression, const std::vector<PushedPiece>& all, int server, Range share)
    : compression_(compression), share_(share) {
  for (const PushedPiece& piece : all) {
    if (piece.server != server) continue;
    pieces_.push_back(piece);
    offsets_.push_back(packed() ? memory_ : (piece.elements.begin - share.begin) * sizeof(float));
    memory_ += room_of(compression_, piece);
    bytes_ += wire_bytes(compression_, piece.elements.size());
  }
  if (!packed()) memory_ = share.size() * sizeof(float);
}

Tensor ArrivingPieces::message(std::size_t piece, std::byte* push) const {
  std::byte* const place = push + offsets_[piece];
  const std::size_t count = pieces_[piece].elements.size();
  if (packed()) return bytes_at(place, wire_bytes(compression_, count));
  return Tensor(std::span(reinterpret_cast<float*>(place), count));
}

void ArrivingPieces::sum_piece(std::size_t piece, std::span<const std::byte* const> pushes, float* share,
                               int threads) const {
  const Range& elements = pieces_[piece].elements;
  float* const first = share + (elements.begin - share_.begin);
  for (const std::byte* const push : pushes)
    for_each_chunk(threads, elements.size(), [&](Range part) {
      const std::byte* const wire = push + offsets_[piece] + wire_bytes(compression_, part.begin);
      const std::span values(first + part.begin, part.size());
      push == pushes.front() ? decode(compression_, wire, values) : decode_and_add(compression_, wire, values);
    });
}

void ArrivingPieces::sum(std::span<const std::byte* const> pushes, float* share, int threads) const {
  if (packed()) {
    for (std::size_t piece = 0; piece < pieces_.size(); ++piece) sum_piece(piece, pushes, share, threads);
    return;
  }
  for (const std::byte* const push : pushes) {
    const auto* const gradients = reinterpret_cast<const float*>(push);
    if (push != pushes.front())
      add_floats(gradients, share, share_.size(), threads);
    else if (gradients != share)
      std::copy_n(gradients, share_.size(), share);
  }
}

}  // namespace ronda
