#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/core/host_device.hpp>

/// The arithmetic of DeviceHash's kernels; tests run the same code on the host.
namespace ronda::device_hash {

constexpr std::int64_t group = 64;            ///< consecutive calls that work on the same piece
constexpr std::int64_t most_calls = 1 << 13;  ///< limit per piece, of any length

struct Piece {
  const float* numbers;  ///< or any other words of 4 bytes
  std::int64_t count;
  std::int64_t first_call, calls;
};

/// SplitMix64's finalizer (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014): a
/// bijection.
[[nodiscard]] RONDA_HOST_DEVICE inline std::uint64_t mixed(std::uint64_t z) {
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31U);
}

/// One call computes one partial sum; neighbouring calls read neighbouring words.
struct SumWords {
  const Piece* pieces;
  const std::uint32_t* piece_of_group;
  std::uint64_t* sums;
  RONDA_HOST_DEVICE void operator()(std::int64_t i) const {
    const Piece piece = pieces[piece_of_group[i / group]];
    std::uint64_t sum = 0;
    for (std::int64_t at = i - piece.first_call; at < piece.count; at += piece.calls) {
      std::uint32_t word = 0;
      memcpy(&word, piece.numbers + at, sizeof word);
      sum += mixed(word + static_cast<std::uint64_t>(at + 1) * 0x9e3779b97f4a7c15U);
    }
    sums[i] = sum;
  }
};

/// One call adds the partial sums of one piece.
struct SumCalls {
  const Piece* pieces;
  const std::uint64_t* sums;
  std::uint64_t* hashes;
  RONDA_HOST_DEVICE void operator()(std::int64_t i) const {
    std::uint64_t sum = 0;
    for (std::int64_t call = 0; call < pieces[i].calls; ++call) sum += sums[pieces[i].first_call + call];
    hashes[i] = sum;
  }
};

/// Assigns the calls to the pieces.
struct Tables {
  std::vector<Piece> pieces;
  std::vector<std::uint32_t> piece_of_group;
  std::int64_t calls = 0;

  /// Throws LogicError for a piece that is not whole words.
  static Tables of(std::span<const std::span<const std::byte>> memory) {
    Tables tables;
    for (const auto bytes : memory) {
      if (bytes.size() % sizeof(float) != 0) throw LogicError("a hash of memory that is not whole words of 4 bytes");
      const auto count = static_cast<std::int64_t>(bytes.size() / sizeof(float));
      const std::int64_t wanted = std::clamp<std::int64_t>((count + group - 1) / group, 1, most_calls);
      const std::int64_t calls = (wanted + group - 1) / group * group;
      tables.pieces.push_back({reinterpret_cast<const float*>(bytes.data()), count, tables.calls, calls});
      tables.piece_of_group.insert(tables.piece_of_group.end(), static_cast<std::size_t>(calls / group),
                                   static_cast<std::uint32_t>(tables.pieces.size() - 1));
      tables.calls += calls;
    }
    return tables;
  }
};

}  // namespace ronda::device_hash
