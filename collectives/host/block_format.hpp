#pragma once
#include <cstddef>
#include <span>

#include <ronda/collectives/host/wire_format.hpp>

namespace ronda {

// Numbers as they are sent by int8, int4 and 2bit: in blocks of a float32 scale s and a few bits for each number. A
// number becomes q s, of a whole number q. `residual`, what earlier roundings lost, is added before and made anew.
//
//     int8, int4   s = m/127 or m/7, of the largest magnitude m in the block; x/s is rounded up or down at random so
//                  that its mean is exact (Alistarh et al., "QSGD", NeurIPS 2017, whose blocks of 512 these are)
//     2bit         -s, 0 or s: what is larger than m/2 is sent as s, the mean of these magnitudes; or what is larger
//                  than m/4 or m/8, where the sum of the squares of what is lost is less by it. Nothing is random.
//                  (Strom, "Scalable distributed DNN training using commodity GPU cloud computing", Interspeech 2015,
//                  with a threshold for each block; TernGrad, which rounds to 0 or m at random, loses far more)
//
// Bytes hold 8/bits numbers each: byte j of a block of n bytes has the numbers j, j + n, …, from its low bits up.
// A block with a number that is not finite has NaN for its scale, and is decoded as NaN, so that nothing looks sound
// that is not; but its zeros stay zero. Gradients have zeros between them, which nobody would write again.

/// @param kept  null, or where what others will decode goes; may be the memory of `values`
void encode_blocks(Compression compression, std::span<const float> values, float* residual, Noise noise,
                   std::byte* wire, float* kept);
void decode_blocks(Compression compression, const std::byte* wire, std::span<float> values);
void decode_and_add_blocks(Compression compression, const std::byte* wire, std::span<float> values);

}  // namespace ronda
